# Sources of the built-in layers, from their one list: hdps_layer_sources(VARIABLE FOLDER).
function(hdps_layer_sources variable folder)
  set(list ${CMAKE_SOURCE_DIR}/common/job/layers/layer_list.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} layers REGEX "^HDPS_LAYER")
  list(TRANSFORM layers REPLACE "^HDPS_LAYER\\(([a-z_]+),.*" "${folder}/\\1.cc")
  set(${variable} ${layers} PARENT_SCOPE)
endfunction()
