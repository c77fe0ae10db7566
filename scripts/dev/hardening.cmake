# What makes a mistake in memory harder to use for an attack, and a build the same every time.
# scripts/dev/hardened.py reads in the programs that the first has arrived, reproducible.sh the second.

# Programs lie at random addresses, and what the loader has filled in is read-only from then on.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>")
# The C library's checks of lengths need the optimizer, and a sanitizer has better ones.
if(NOT HDPS_SANITIZE)
  add_compile_options(
    "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

# Debugging information and __FILE__ name sources from the root of the project on. Names of unnamed
# namespaces in device code still hold a number made of the source's path, as nvcc has it; without
# -objtemp its symbols would name temporary files by process number.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-objtemp>")
