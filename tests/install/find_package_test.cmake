# SPDX-License-Identifier: Apache-2.0
# What find_package(itspace) in PREFIX grants, and what it refuses with a reason. VERSION is the version installed.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

file(REMOVE_RECURSE ${SCRATCH})
set(ask ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/question -B ${SCRATCH} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX})

must_run("no component" ${ask} "-DTARGETS=itspace::itspace itspace::io")
must_run("the component io" ${ask} "-DREQUEST=COMPONENTS io" "-DTARGETS=itspace::itspace itspace::io")
must_run("both components" ${ask} "-DREQUEST=COMPONENTS core io" "-DTARGETS=itspace::itspace itspace::io")
must_run("a component one can do without" ${ask} "-DREQUEST=COMPONENTS core OPTIONAL_COMPONENTS gpu"
         -DTARGETS=itspace::itspace -DABSENT=gpu)
must_refuse("an unknown component" "'gpu';core, io" ${ask} "-DREQUEST=COMPONENTS core gpu" -DTARGETS= -DABSENT=)

# While the major version is 0, a minor version may break what the one before it promised.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" minor_version ${VERSION})
set(major ${CMAKE_MATCH_1})
math(EXPR before "${CMAKE_MATCH_2} - 1")
math(EXPR after "${CMAKE_MATCH_2} + 1")
must_run("this minor version" ${ask} -DREQUEST=${minor_version})
must_refuse("the minor version before" "${VERSION}" ${ask} -DREQUEST=${major}.${before})
must_refuse("the minor version after" "${VERSION}" ${ask} -DREQUEST=${major}.${after})
