# Options that make memory errors harder to exploit, and builds reproducible. scripts/dev/hardened.py
# checks the former in the programs, reproducible.sh the latter.

# Loads programs at random addresses, and makes the loader's tables read-only after loading.
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

# Debugging information and __FILE__ use paths relative to the project. In device code, nvcc still
# derives a number from the source's path for unnamed namespaces. Without -objtemp its symbols would
# contain names of temporary files with process ids.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-objtemp>")
