# SPDX-License-Identifier: Apache-2.0
# The parts we stand on. The core needs Eigen, a CBLAS and LAPACKE; the rest serves one room each and is asked for there.
# A project that we are a part of may have an Eigen of its own.
if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 3.4 REQUIRED NO_MODULE)
endif()

find_library(ITSPACE_OPENBLAS NAMES openblas REQUIRED)
find_path(ITSPACE_CBLAS_INCLUDE NAMES cblas.h PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu REQUIRED)
find_library(ITSPACE_LAPACKE NAMES lapacke REQUIRED)
find_path(ITSPACE_LAPACKE_INCLUDE NAMES lapacke.h PATH_SUFFIXES openblas openblas-pthread REQUIRED)
add_library(itspace_blas INTERFACE)
target_include_directories(itspace_blas SYSTEM INTERFACE ${ITSPACE_CBLAS_INCLUDE} ${ITSPACE_LAPACKE_INCLUDE})
target_link_libraries(itspace_blas INTERFACE ${ITSPACE_LAPACKE} ${ITSPACE_OPENBLAS})
