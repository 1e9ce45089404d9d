# SPDX-License-Identifier: Apache-2.0
# The library without files. STATIC_TREE is a tree of SOURCE_TREE in which the libraries are built already.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH})
set(configure ${CMAKE_COMMAND} -S ${SOURCE_TREE} -DITSPACE_CUDA=OFF -DITSPACE_MPI=OFF -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
              -DITSPACE_BUILD_IO=OFF)

must_run("configure without io, and nothing else said" ${configure} -B ${SCRATCH}/alone)
foreach(part IN ITEMS PYTHON BENCHMARKS)  # never built unless asked for by name
  must_refuse("ITSPACE_BUILD_${part} without io" "ITSPACE_BUILD_${part};ITSPACE_BUILD_IO" ${configure}
              -B ${SCRATCH}/alone -DITSPACE_BUILD_${part}=ON)
  must_run("configure" ${configure} -B ${SCRATCH}/alone -UITSPACE_BUILD_${part})
endforeach()

must_run("configure" ${configure} -B ${STATIC_TREE})
must_run("build" ${CMAKE_COMMAND} --build ${STATIC_TREE} --parallel 2)
must_run("install" ${CMAKE_COMMAND} --install ${STATIC_TREE} --prefix ${SCRATCH}/prefix)
file(GLOB headers ${SCRATCH}/prefix/include/itspace/*.hpp)
if(NOT headers)
  message(FATAL_ERROR "no header was installed")
endif()
foreach(header IN LISTS headers)
  file(READ ${header} text)
  if(text MATCHES "namespace itspace::io")
    message(FATAL_ERROR "${header} is of io, which is not installed")
  endif()
endforeach()

set(ask ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/question -B ${SCRATCH}/question -G ${GENERATOR}
        -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix)
must_run("the component core" ${ask} "-DREQUEST=COMPONENTS core" -DTARGETS=itspace::itspace)
must_refuse("the component io" "'io';ITSPACE_BUILD_IO=ON;core" ${ask} "-DREQUEST=COMPONENTS io")
