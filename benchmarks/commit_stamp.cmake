# Writes the commit of ROOT into the header OUT, unless it is there already.
execute_process(COMMAND git -C ${ROOT} rev-parse --short HEAD OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define HDPS_COMMIT \"${commit}\"\n")
