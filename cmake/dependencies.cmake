# SPDX-License-Identifier: Apache-2.0
# The parts we stand on. The core needs Eigen, a CBLAS, LAPACKE and Highway; the rest serves one room each and is asked for there.
# A project that we are a part of may have an Eigen of its own. Eigen is asked for without a version: to a request for 3.4
# Eigen 5 answers that it is incompatible, and for us it is not.
if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 REQUIRED NO_MODULE)
endif()
if(Eigen3_VERSION AND Eigen3_VERSION VERSION_LESS 3.4)
  message(FATAL_ERROR "itspace needs Eigen 3.4 or newer; ${Eigen3_DIR} has Eigen ${Eigen3_VERSION}. Set Eigen3_DIR to the "
                      "folder that holds Eigen3Config.cmake of a newer one")
endif()

find_library(ITSPACE_OPENBLAS NAMES openblas REQUIRED)
find_path(ITSPACE_CBLAS_INCLUDE NAMES cblas.h PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu REQUIRED)
find_library(ITSPACE_LAPACKE NAMES lapacke REQUIRED)
find_path(ITSPACE_LAPACKE_INCLUDE NAMES lapacke.h PATH_SUFFIXES openblas openblas-pthread REQUIRED)
add_library(itspace_blas INTERFACE)
target_include_directories(itspace_blas SYSTEM INTERFACE ${ITSPACE_CBLAS_INCLUDE} ${ITSPACE_LAPACKE_INCLUDE})
target_link_libraries(itspace_blas INTERFACE ${ITSPACE_LAPACKE} ${ITSPACE_OPENBLAS})

find_library(ITSPACE_HIGHWAY NAMES hwy REQUIRED)
find_path(ITSPACE_HIGHWAY_INCLUDE NAMES hwy/highway.h REQUIRED)
add_library(itspace_highway INTERFACE)
target_include_directories(itspace_highway SYSTEM INTERFACE ${ITSPACE_HIGHWAY_INCLUDE})
target_link_libraries(itspace_highway INTERFACE ${ITSPACE_HIGHWAY})
find_package(Threads REQUIRED)

# The GPU room. Sanitizers do not see through CUDA's memory.
set(ITSPACE_WITH_CUDA OFF)
if(ITSPACE_CUDA STREQUAL "AUTO" AND NOT ITSPACE_SANITIZE)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(ITSPACE_WITH_CUDA ON)
  endif()
elseif(NOT ITSPACE_CUDA STREQUAL "AUTO" AND ITSPACE_CUDA)
  set(ITSPACE_WITH_CUDA ON)
endif()
if(ITSPACE_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)  # A100; H100 and H200
  endif()
  # Without ccache, which does not see all changes of a kernel: it gave objects of before a header was changed.
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "itspace::cuda is built, by ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, for: "
                 "${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "itspace::cuda is not built (ITSPACE_CUDA=${ITSPACE_CUDA})")
endif()

# The MPI room: the C interface alone, which needs the C language. Its own memory and threads are no business of the
# sanitizers, and the Python module talks through mpi4py.
set(ITSPACE_WITH_MPI OFF)
if(ITSPACE_MPI AND NOT (ITSPACE_MPI STREQUAL "AUTO" AND (ITSPACE_SANITIZE OR ITSPACE_BUILD_PYTHON)))
  enable_language(C)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  if(ITSPACE_MPI STREQUAL "AUTO")
    find_package(MPI QUIET COMPONENTS C)
  else()
    find_package(MPI REQUIRED COMPONENTS C)
  endif()
  set(ITSPACE_WITH_MPI ${MPI_C_FOUND})
endif()
if(ITSPACE_WITH_MPI)
  message(STATUS "itspace::mpi is built, with ${MPI_C_LIBRARIES}")
else()
  message(STATUS "itspace::mpi is not built (ITSPACE_MPI=${ITSPACE_MPI})")
endif()

# NCCL: its header alone, the library is looked for at run time.
set(ITSPACE_WITH_NCCL OFF)
if(ITSPACE_WITH_CUDA AND ITSPACE_WITH_MPI AND ITSPACE_NCCL)
  find_path(ITSPACE_NCCL_INCLUDE NAMES nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(ITSPACE_NCCL_INCLUDE)
    set(ITSPACE_WITH_NCCL ON)
  endif()
endif()
if(ITSPACE_WITH_NCCL)
  message(STATUS "itspace::nccl is built, with ${ITSPACE_NCCL_INCLUDE}/nccl.h")
elseif(ITSPACE_NCCL AND NOT ITSPACE_NCCL STREQUAL "AUTO")
  message(FATAL_ERROR "ITSPACE_NCCL=ON needs itspace::cuda, itspace::mpi and nccl.h (Debian and Ubuntu: libnccl-dev, of NVIDIA's "
                      "repository; ITSPACE_NCCL_INCLUDE names its folder)")
else()
  message(STATUS "itspace::nccl is not built (ITSPACE_NCCL=${ITSPACE_NCCL})")
endif()

# HDF5, by its C interface. Debian keeps the serial one in folders of its own.
set(ITSPACE_WITH_HDF5 OFF)
if((ITSPACE_HDF5 STREQUAL "AUTO" AND BUILD_SHARED_LIBS AND NOT ITSPACE_BUILD_PYTHON) OR
   (NOT ITSPACE_HDF5 STREQUAL "AUTO" AND ITSPACE_HDF5))
  find_path(ITSPACE_HDF5_INCLUDE NAMES hdf5.h PATH_SUFFIXES hdf5/serial)
  find_library(ITSPACE_HDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
  if(ITSPACE_HDF5_INCLUDE AND ITSPACE_HDF5_LIBRARY)
    set(ITSPACE_WITH_HDF5 ON)
  elseif(NOT ITSPACE_HDF5 STREQUAL "AUTO")
    message(FATAL_ERROR "ITSPACE_HDF5=${ITSPACE_HDF5} needs hdf5.h and libhdf5 (Debian: libhdf5-dev)")
  endif()
endif()
message(STATUS "Datasets of HDF5 files are read: ${ITSPACE_WITH_HDF5} (ITSPACE_HDF5=${ITSPACE_HDF5})")
