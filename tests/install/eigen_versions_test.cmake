# SPDX-License-Identifier: Apache-2.0
# Which Eigen is accepted: by the build of SOURCE_TREE, and by the package in PREFIX, which was built with EIGEN_VERSION.
# The packages of Eigen made here have a version and nothing else.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH})
foreach(version IN ITEMS 3.3.9 3.4.99 5.0.1 5.9.0)
  file(WRITE ${SCRATCH}/${version}/Eigen3Config.cmake "add_library(Eigen3::Eigen INTERFACE IMPORTED)\n")
  # Like the real ones: compatible with requests for the same major version.
  string(REGEX MATCH "^[0-9]+" major ${version})
  file(WRITE ${SCRATCH}/${version}/Eigen3ConfigVersion.cmake
       "set(PACKAGE_VERSION ${version})\n"
       "if(NOT PACKAGE_FIND_VERSION OR PACKAGE_FIND_VERSION_MAJOR STREQUAL ${major})\n"
       "  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
       "endif()\n")
endforeach()

set(configure ${CMAKE_COMMAND} -S ${SOURCE_TREE} -DITSPACE_CUDA=OFF -DITSPACE_MPI=OFF -B ${SCRATCH}/build -G ${GENERATOR}
              -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DITSPACE_BUILD_CLI=OFF -DITSPACE_BUILD_EXPERIMENTS=OFF
              -DITSPACE_BUILD_TESTS=OFF)
foreach(version IN ITEMS 3.4.99 5.0.1)
  must_run("build with Eigen ${version}" ${configure} -DEigen3_DIR=${SCRATCH}/${version})
  # CMake goes on looking where a request is refused, and may have found the system's.
  file(STRINGS ${SCRATCH}/build/CMakeCache.txt used REGEX "^Eigen3_DIR:")
  if(NOT used MATCHES "=${SCRATCH}/${version}$")
    message(FATAL_ERROR "Eigen ${version} was passed over: ${used}")
  endif()
endforeach()
must_refuse("build with an old Eigen" "3.3.9;3.4" ${configure} -DEigen3_DIR=${SCRATCH}/3.3.9)

set(ask ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/question -B ${SCRATCH}/question -G ${GENERATOR}
        -DCMAKE_PREFIX_PATH=${PREFIX})
if(EIGEN_VERSION VERSION_LESS 5)
  set(same 3.4.99)
  set(other 5.9.0)
else()
  set(same 5.9.0)
  set(other 3.4.99)
endif()
must_run("use with another Eigen of the same major version" ${ask} -DEigen3_DIR=${SCRATCH}/${same})
must_refuse("use with an Eigen of another major version" "${EIGEN_VERSION};${other};Eigen3_DIR" ${ask}
            -DEigen3_DIR=${SCRATCH}/${other})
must_refuse("use with an old Eigen" "${EIGEN_VERSION};3.3.9;Eigen3_DIR" ${ask} -DEigen3_DIR=${SCRATCH}/3.3.9)
