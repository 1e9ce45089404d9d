# SPDX-License-Identifier: Apache-2.0
# The flags of SOURCE_TREE are flags that clang (CLANG) knows: with warnings as errors, one it does not know is an error.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

if(NOT CLANG)
  message("SKIPPED: no clang++ on this machine")
  return()
endif()
file(REMOVE_RECURSE ${SCRATCH})
must_run("configure" ${CMAKE_COMMAND} -S ${SOURCE_TREE} -DITSPACE_CUDA=OFF -DITSPACE_MPI=OFF -B ${SCRATCH} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CLANG}
         -DITSPACE_WERROR=ON -DITSPACE_BUILD_CLI=OFF -DITSPACE_BUILD_EXPERIMENTS=OFF -DITSPACE_BUILD_TESTS=OFF)
must_compile("a file of the core" ${SCRATCH} ${SOURCE_TREE}/src/core/version.cpp)
