# SPDX-License-Identifier: Apache-2.0
# The installed library must not touch its users' Eigen: the program in own_eigen, compiled for AVX2 and for this
# processor, there also with the sanitizers, against the library in PREFIX. With FLAGS: compiled so alone, with -O3; what
# crosses the boundary of a shared library is the same with -O1, which takes half the time.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH})
set(optimization -O1)
set(kinds "-march=native"
          "-march=native -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr -fno-sanitize-recover=all")
file(READ /proc/cpuinfo processor)
if(processor MATCHES " avx2 ")
  list(APPEND kinds "-mavx2 -mfma")
endif()
if(DEFINED FLAGS)
  set(optimization -O3)
  set(kinds ${FLAGS})
endif()
set(number 0)
foreach(flags IN LISTS kinds)
  math(EXPR number "${number} + 1")
  must_run("configure with '${flags}'" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/own_eigen -B ${SCRATCH}/${number}
           -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
           -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=${optimization} -DNDEBUG" "-DCMAKE_CXX_FLAGS=${flags}")
  must_run("build with '${flags}'" ${CMAKE_COMMAND} --build ${SCRATCH}/${number} --target own_eigen)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env OPENBLAS_CORETYPE=Haswell ${SCRATCH}/${number}/own_eigen
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    # g++ 14.2, AVX-512 and the address sanitizer break Eigen 3.4's Cholesky by themselves.
    must_run("build Eigen alone" ${CMAKE_COMMAND} --build ${SCRATCH}/${number} --target eigen_alone)
    execute_process(COMMAND ${SCRATCH}/${number}/eigen_alone RESULT_VARIABLE alone OUTPUT_QUIET ERROR_QUIET)
    if(alone EQUAL 0)
      message(FATAL_ERROR "run with '${flags}' failed: ${status}")
    endif()
    message("not tried with '${flags}': a program of Eigen's alone ends with ${alone} here")
  endif()
endforeach()
