# SPDX-License-Identifier: Apache-2.0
# -D_GLIBCXX_DEBUG gives std::vector another layout. CONSUMER is refused it where the library in PREFIX was built without;
# a library that is built with it, as a part of PARENT, works with it.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH})
must_run("configure the consumer" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/consumer -G ${GENERATOR}
         -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_CXX_FLAGS=-D_GLIBCXX_DEBUG)
must_refuse("build the consumer" "_GLIBCXX_ASSERTIONS;ITSPACE_GLIBCXX_DEBUG=ON" ${CMAKE_COMMAND} --build
            ${SCRATCH}/consumer)

must_run("configure the parent" ${CMAKE_COMMAND} -S ${PARENT} -B ${SCRATCH}/parent -G ${GENERATOR}
         -DITSPACE=${SOURCE_TREE} -DEIGEN_INCLUDE=${EIGEN_INCLUDE} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
         -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_CXX_FLAGS=-D_GLIBCXX_DEBUG -DITSPACE_GLIBCXX_DEBUG=ON)
must_compile("a file of the library" ${SCRATCH}/parent ${SOURCE_TREE}/src/core/version.cpp)
must_compile("a file of the parent" ${SCRATCH}/parent ${PARENT}/main.cpp)
