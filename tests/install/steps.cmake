# SPDX-License-Identifier: Apache-2.0
# What the tests of this folder share. Each of them is a script (cmake -P) that does what another project's build does.

# Runs a command, shows what it prints, and ends the test unless it succeeds. `output` is what it printed.
function(must_run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed: ${status}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Runs a command that must fail, and must say why: the texts of the list `saying`, in any order.
function(must_refuse what saying)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(status EQUAL 0)
    message(FATAL_ERROR "${what} succeeded; it should have been refused")
  endif()
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks the lines of a message where it likes
  foreach(text IN LISTS saying)
    string(FIND "${output}" "${text}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "${what} was refused, but without a word of '${text}'")
    endif()
  endforeach()
endfunction()

# Runs the command by which the configured tree compiles one source file, without building anything else.
function(must_compile what build_tree source)
  file(READ ${build_tree}/compile_commands.json commands)
  string(JSON count LENGTH "${commands}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON file GET "${commands}" ${index} file)
    if(file STREQUAL source)
      string(JSON command GET "${commands}" ${index} command)
      string(JSON folder GET "${commands}" ${index} directory)
      string(REGEX MATCH " -o ([^ ]+)" object "${command}")
      get_filename_component(object_folder ${CMAKE_MATCH_1} DIRECTORY BASE_DIR ${folder})
      file(MAKE_DIRECTORY ${object_folder})
      file(WRITE ${build_tree}/compile_one.sh "cd '${folder}' && ${command}\n")  # its quotes are meant for a shell
      must_run("${what}" sh ${build_tree}/compile_one.sh)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${build_tree} does not compile ${source}")
endfunction()
