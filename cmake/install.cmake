# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and what find_package(itspace) then finds: itspace::itspace and, where they were
# built, itspace::io, itspace::cuda, itspace::mpi and itspace::nccl.
include(CMakePackageConfigHelpers)

# The parts find each other wherever the prefix is moved to.
file(RELATIVE_PATH ITSPACE_LIB_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(ITSPACE_LIBRARIES itspace)
set(ITSPACE_COMPONENTS core)
if(TARGET itspace_io)
  list(APPEND ITSPACE_LIBRARIES itspace_io)
  list(APPEND ITSPACE_COMPONENTS io)
  set_target_properties(itspace_io PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(TARGET itspace_arrow)  # finds Arrow where it was found here
  set_target_properties(itspace_arrow PROPERTIES INSTALL_RPATH "${ITSPACE_PYARROW}" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS itspace_arrow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET itspace_cuda)
  list(APPEND ITSPACE_LIBRARIES itspace_cuda)
  list(APPEND ITSPACE_COMPONENTS cuda)
  set_target_properties(itspace_cuda PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(TARGET itspace_mpi)
  list(APPEND ITSPACE_LIBRARIES itspace_mpi)
  list(APPEND ITSPACE_COMPONENTS mpi)
  set_target_properties(itspace_mpi PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(TARGET itspace_nccl)
  list(APPEND ITSPACE_LIBRARIES itspace_nccl)
  list(APPEND ITSPACE_COMPONENTS nccl)
  set_target_properties(itspace_nccl PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(TARGET itspace_cli)
  install(TARGETS itspace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_target_properties(itspace_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${ITSPACE_LIB_FROM_BIN}")
endif()

install(TARGETS ${ITSPACE_LIBRARIES} EXPORT itspaceTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(NOT TARGET itspace_io)
  # A header says itself that it is of io: by its namespace. A list of names would have to be remembered.
  file(GLOB ITSPACE_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/itspace/*.hpp)
  foreach(header IN LISTS ITSPACE_HEADERS)
    file(STRINGS ${header} of_io REGEX "^namespace itspace::io")
    if(of_io)
      cmake_path(GET header FILENAME name)
      list(APPEND ITSPACE_WITHOUT_HEADERS PATTERN ${name} EXCLUDE)
    endif()
  endforeach()
endif()
if(NOT TARGET itspace_cuda)
  list(APPEND ITSPACE_WITHOUT_HEADERS REGEX "/itspace/cuda" EXCLUDE)
endif()
if(NOT TARGET itspace_mpi)
  list(APPEND ITSPACE_WITHOUT_HEADERS REGEX "/itspace/mpi" EXCLUDE)
endif()
if(NOT TARGET itspace_nccl)
  list(APPEND ITSPACE_WITHOUT_HEADERS REGEX "/itspace/nccl" EXCLUDE)
endif()
install(DIRECTORY include/itspace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp"
        ${ITSPACE_WITHOUT_HEADERS})
if(PROJECT_IS_TOP_LEVEL)
  install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

if(TARGET itspace_python)
  set(itspace_python_modules itspace_python)
  if(TARGET itspace_python_cuda)
    list(APPEND itspace_python_modules itspace_python_cuda)
  endif()
  install(TARGETS ${itspace_python_modules} LIBRARY DESTINATION itspace COMPONENT python)
endif()

get_target_property(ITSPACE_LIBRARY_TYPE itspace TYPE)
set(ITSPACE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/itspace)
install(EXPORT itspaceTargets NAMESPACE itspace:: DESTINATION ${ITSPACE_CMAKE_DIR})
configure_package_config_file(cmake/itspaceConfig.cmake.in ${PROJECT_BINARY_DIR}/itspaceConfig.cmake
                              INSTALL_DESTINATION ${ITSPACE_CMAKE_DIR})
# While the major version is 0, a minor version may break what the one before it promised: in the package and in the name
# that programs look for at start (SOVERSION).
write_basic_package_version_file(${PROJECT_BINARY_DIR}/itspaceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/itspaceConfig.cmake ${PROJECT_BINARY_DIR}/itspaceConfigVersion.cmake
        DESTINATION ${ITSPACE_CMAKE_DIR})
