# SPDX-License-Identifier: Apache-2.0
# What a build may choose, and the flags every room shares.
option(BUILD_SHARED_LIBS "Build shared libraries" ON)
option(ITSPACE_BUILD_CLI "Build the program" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_EXPERIMENTS "Build the demo" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ITSPACE_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(ITSPACE_WERROR "Treat warnings as errors" OFF)
set(ITSPACE_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
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

# Every target of ours links this privately: warnings, sanitizers, and contraction off so that the same source gives the
# same bits whatever instruction set it is compiled for.
add_library(itspace_flags INTERFACE)
target_compile_options(itspace_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-maybe-uninitialized
                                               -ffp-contract=off)
if(ITSPACE_WERROR)
  target_compile_options(itspace_flags INTERFACE -Werror)
endif()
if(ITSPACE_SANITIZE)
  target_compile_options(itspace_flags INTERFACE -fsanitize=${ITSPACE_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(itspace_flags INTERFACE -fsanitize=${ITSPACE_SANITIZE})
endif()
