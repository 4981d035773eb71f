# The package of nandu: nandu::nandu is the shared library, nandu::nandu_static the static one.
get_filename_component(_nandu_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET nandu::nandu)
  add_library(nandu::nandu SHARED IMPORTED)
  set_target_properties(nandu::nandu PROPERTIES
    IMPORTED_LOCATION "${_nandu_prefix}/lib/libnandu.so.0"
    IMPORTED_SONAME "libnandu.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_nandu_prefix}/include")

  add_library(nandu::nandu_static STATIC IMPORTED)
  set_target_properties(nandu::nandu_static PROPERTIES
    IMPORTED_LOCATION "${_nandu_prefix}/lib/libnandu.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_nandu_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m")
endif()

unset(_nandu_prefix)
