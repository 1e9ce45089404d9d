# SPDX-License-Identifier: Apache-2.0
# itspace as a part of another project (add_subdirectory, FetchContent): PARENT builds SOURCE_TREE with an Eigen of its
# own, in PARENT_TREE, and keeps its own choices and its own install tree.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH} ${PARENT_TREE})
set(configure ${CMAKE_COMMAND} -S ${PARENT} -G ${GENERATOR} -DITSPACE=${SOURCE_TREE} -DEIGEN_INCLUDE=${EIGEN_INCLUDE}
              -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DITSPACE_WERROR=${WERROR})

# Twice: what was put into the parent's cache is felt by what comes before us only from the second time on.
must_run("configure" ${configure} -B ${SCRATCH}/untouched)
must_run("configure again" ${configure} -B ${SCRATCH}/untouched)

# The parent's Eigen is in no export set, and still itspace can be installed with the parent.
must_run("configure with the install rules of itspace" ${configure} -B ${PARENT_TREE} -DCMAKE_BUILD_TYPE=Release
         -DITSPACE_INSTALL=ON)

must_run("configure" ${configure} -B ${PARENT_TREE} -UITSPACE_INSTALL)
must_run("build" ${CMAKE_COMMAND} --build ${PARENT_TREE} --parallel 2)
must_run("run" ${PARENT_TREE}/parent)
must_run("install" ${CMAKE_COMMAND} --install ${PARENT_TREE} --prefix ${SCRATCH}/prefix)
file(GLOB_RECURSE installed RELATIVE ${SCRATCH}/prefix ${SCRATCH}/prefix/*)
if(NOT installed STREQUAL "bin/parent")
  message(FATAL_ERROR "the parent installs its program alone, but got: ${installed}")
endif()
