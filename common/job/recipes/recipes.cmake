# Sources of the recipes, from their one list: hdps_recipe_sources(VARIABLE FOLDER).
function(hdps_recipe_sources variable folder)
  set(list ${CMAKE_SOURCE_DIR}/common/job/recipes/recipe_list.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} recipes REGEX "^HDPS_RECIPE")
  list(TRANSFORM recipes REPLACE "^HDPS_RECIPE\\(([a-z0-9_]+),.*" "${folder}/\\1.cc")
  set(${variable} ${recipes} PARENT_SCOPE)
endfunction()
