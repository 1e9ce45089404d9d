# SPDX-License-Identifier: Apache-2.0
# What a build may choose, and the flags every room shares.
# As a part of another project itspace leaves BUILD_SHARED_LIBS and CMAKE_BUILD_TYPE, which are that project's, alone, and
# adds nothing to what it installs unless asked to.
if(PROJECT_IS_TOP_LEVEL)
  option(BUILD_SHARED_LIBS "Build shared libraries" ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
endif()
option(ITSPACE_INSTALL "Install what is built" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_IO "Build the library for files, itspace::io (needs zlib, nlohmann-json and fmt)" ON)
option(ITSPACE_BUILD_PYTHON "Build the Python module" OFF)
# AUTO: where a CUDA compiler is found. A project that we are a part of decides for itself what it enables.
set(itspace_cuda_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(itspace_cuda_default AUTO)
endif()
set(ITSPACE_CUDA ${itspace_cuda_default} CACHE STRING "Build itspace::cuda, the solvers on a GPU: AUTO, ON or OFF")
set_property(CACHE ITSPACE_CUDA PROPERTY STRINGS AUTO ON OFF)
# The same for MPI.
set(ITSPACE_MPI ${itspace_cuda_default} CACHE STRING "Build itspace::mpi, runs over many processes: AUTO, ON or OFF")
set_property(CACHE ITSPACE_MPI PROPERTY STRINGS AUTO ON OFF)
# And for features on several GPUs, which needs both of them.
set(ITSPACE_NCCL ${itspace_cuda_default} CACHE STRING "Build itspace::nccl, features on the GPUs of several processes: AUTO, ON or OFF")
set_property(CACHE ITSPACE_NCCL PROPERTY STRINGS AUTO ON OFF)
# AUTO: where libhdf5 is found and itspace is a shared library. A static one would leave it to whoever links it, and the
# Python module stands alone and has h5py.
set(itspace_hdf5_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(itspace_hdf5_default AUTO)
endif()
set(ITSPACE_HDF5 ${itspace_hdf5_default} CACHE STRING "Read datasets of HDF5 files: AUTO, ON or OFF")
set_property(CACHE ITSPACE_HDF5 PROPERTY STRINGS AUTO ON OFF)
# The same for Arrow. A pyarrow is used only where it is named: a library should not come to depend on a Python package that
# happens to be there.
set(ITSPACE_ARROW ${itspace_hdf5_default} CACHE STRING "Read Parquet and Arrow files: AUTO, ON or OFF")
set_property(CACHE ITSPACE_ARROW PROPERTY STRINGS AUTO ON OFF)
set(ITSPACE_PYARROW "" CACHE PATH "The folder of an installed pyarrow, whose Arrow is then used (script/pyarrow makes one)")
option(ITSPACE_BUILD_CLI "Build the program" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_EXPERIMENTS "Build the demo and the experiments" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_BENCHMARKS "Build the benchmarks" OFF)
# What files cost to compile is what they read and instantiate of Eigen, most of it the same in all of them: several files
# at a time take half of it, or less. Off, a change of one file is compiled faster, and each file by itself.
option(ITSPACE_COMPILE_TOGETHER "Compile several files of a room, or of its tests, at a time" ON)
function(itspace_compile_together target)
  if(ITSPACE_COMPILE_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # It takes what is in an included file for a header's, where something of an unnamed namespace would be a mistake.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
# Off by default: a compiler newer than ours knows warnings that ours does not, and they are no reason not to build.
option(ITSPACE_WERROR "Treat warnings as errors" OFF)
# Whoever leaves out the files leaves out what needs them too; what is built only when asked for is asked about.
if(NOT ITSPACE_BUILD_IO)
  foreach(part IN ITEMS CLI EXPERIMENTS TESTS)
    if(ITSPACE_BUILD_${part})
      message(STATUS "ITSPACE_BUILD_${part} is off in this build: it needs ITSPACE_BUILD_IO=ON")
      set(ITSPACE_BUILD_${part} OFF)
    endif()
  endforeach()
  foreach(part IN ITEMS PYTHON BENCHMARKS)
    if(ITSPACE_BUILD_${part})
      message(FATAL_ERROR "ITSPACE_BUILD_${part}=ON needs itspace::io, the files: set ITSPACE_BUILD_IO=ON too, or "
                          "ITSPACE_BUILD_${part}=OFF")
    endif()
  endforeach()
endif()
option(ITSPACE_GLIBCXX_DEBUG "Build the library, and all that links it, in libstdc++'s debug mode" OFF)
set(ITSPACE_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(ITSPACE_CCACHE ccache)
if(ITSPACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ITSPACE_CCACHE})
endif()

include(GNUInstallDirs)

# Warnings, and contraction off so that the same source gives the same bits whatever instruction set it is compiled for.
add_library(itspace_warnings INTERFACE)
set(ITSPACE_GNU_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # clang does not know it, and says so
target_compile_options(itspace_warnings INTERFACE -Wall -Wextra -Wpedantic ${ITSPACE_GNU_WARNINGS}
                                                  -ffp-contract=off)
if(ITSPACE_WERROR)
  target_compile_options(itspace_warnings INTERFACE -Werror)
endif()

# Every library and program of ours links itspace_flags privately. The tests link itspace_test_flags: they are not
# instrumented themselves, so that their objects are the same in every build and the compiler cache serves them.
add_library(itspace_flags INTERFACE)
add_library(itspace_test_flags INTERFACE)
target_link_libraries(itspace_flags INTERFACE itspace_warnings)
target_link_libraries(itspace_test_flags INTERFACE itspace_warnings)
target_compile_options(itspace_flags INTERFACE -Wshadow)
if(NOT ITSPACE_COMPILE_TOGETHER)  # where names of one file shadow those of another
  target_compile_options(itspace_test_flags INTERFACE -Wshadow)
endif()
if(ITSPACE_SANITIZE)
  # Eigen allocates in another way where it sees a sanitizer; test objects, which are compiled without one, hand matrices
  # to instrumented ones.
  target_compile_definitions(itspace_flags INTERFACE EIGEN_MALLOC_ALREADY_ALIGNED=1)
  # Optimizing instrumented arguments and reports takes a third of the time to compile them: targets without numerics have
  # the property ITSPACE_NO_NUMERICS.
  target_compile_options(itspace_flags INTERFACE -O$<NOT:$<BOOL:$<TARGET_PROPERTY:ITSPACE_NO_NUMERICS>>> -g1 -UNDEBUG -D_GLIBCXX_ASSERTIONS -fsanitize=${ITSPACE_SANITIZE}
                                                 -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(ITSPACE_SANITIZE MATCHES "undefined")
    # These check every access through a pointer, which address sees too, and double the time to compile Eigen.
    target_compile_options(itspace_flags INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  target_link_options(itspace_flags INTERFACE -fsanitize=${ITSPACE_SANITIZE})
  target_link_options(itspace_test_flags INTERFACE -fsanitize=${ITSPACE_SANITIZE})
endif()
