# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_TREE under SCRATCH, builds the project CONSUMER against what was installed, and runs it. With
# STATIC_TREE instead it first builds the libraries of SOURCE_TREE there, static.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH}/prefix ${SCRATCH}/consumer)
if(DEFINED STATIC_TREE)
  set(BUILD_TREE ${STATIC_TREE})
  must_run("configure" ${CMAKE_COMMAND} -S ${SOURCE_TREE} -B ${BUILD_TREE} -G ${GENERATOR}
           -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF
           -DITSPACE_WERROR=${WERROR} -DITSPACE_BUILD_IO=ON -DITSPACE_BUILD_CLI=OFF
           -DITSPACE_BUILD_EXPERIMENTS=OFF -DITSPACE_BUILD_TESTS=OFF -DITSPACE_CUDA=OFF -DITSPACE_MPI=OFF)
  must_run("build" ${CMAKE_COMMAND} --build ${BUILD_TREE} --parallel 2)
endif()
must_run("install" ${CMAKE_COMMAND} --install ${BUILD_TREE} --prefix ${SCRATCH}/prefix)

# An installed tree that still points at where it was built or written is not installed.
file(GLOB_RECURSE package_files ${SCRATCH}/prefix/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  foreach(place IN ITEMS ${BUILD_TREE} ${CONSUMER})
    string(FIND "${text}" ${place} position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${file} names ${place}")
    endif()
  endforeach()
endforeach()

must_run("configure the consumer" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/consumer -G ${GENERATOR}
         -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release)
must_run("build the consumer" ${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
must_run("run the consumer" ${SCRATCH}/consumer/consumer)
string(FIND "${output}" "itspace ${VERSION}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "the consumer did not report itspace ${VERSION}")
endif()
