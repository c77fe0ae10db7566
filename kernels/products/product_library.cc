// Asks and limits oneDNN; the threads it must not start are OpenMP's.
#include "kernels/products/product_library.h"

#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include <optional>

// Of the OpenMP library that oneDNN runs on. Declared here since not every compiler brings omp.h.
extern "C" void omp_set_num_threads(int count);

namespace hdps {
namespace {

// oneDNN takes a limit once, before its first product. It has no loops plainer than SSE4.1.
bool LimitVectorsOfLibrary() {
  const std::optional<VectorWidth> limit = VectorWidthLimit();
  if (!limit) return true;
  const dnnl_cpu_isa_t isa = *limit == VectorWidth::kAvx512 ? dnnl_cpu_isa_avx512_core
                             : *limit == VectorWidth::kAvx2 ? dnnl_cpu_isa_avx2
                                                            : dnnl_cpu_isa_sse41;
  CHECK_EQ(dnnl_set_max_cpu_isa(isa), dnnl_success) << "oneDNN was built without a limit of ISA";
  return true;
}

bool LibraryHas(dnnl_cpu_isa_t all) {
  PrepareProductLibrary();
  return (dnnl_get_effective_cpu_isa() & all) == all;
}

}  // namespace

void PrepareProductLibrary() {
  [[maybe_unused]] static const bool limited = LimitVectorsOfLibrary();
  omp_set_num_threads(1);  // Of the calling thread alone, so each one has to say it.
}

VectorWidth WidthOfProductLibrary() {
  return LibraryHas(dnnl_cpu_isa_avx512_core) ? VectorWidth::kAvx512
         : LibraryHas(dnnl_cpu_isa_avx2)      ? VectorWidth::kAvx2
                                              : VectorWidth::kPlain;
}

const char* NameOfProductLibraryWidth() {
  const VectorWidth width = WidthOfProductLibrary();
  if (width != VectorWidth::kPlain) return VectorWidthName(width).data();
  return LibraryHas(dnnl_cpu_isa_avx) ? "avx" : "sse4.1";
}

bool ProductLibraryHasAmx() { return LibraryHas(dnnl_cpu_isa_avx512_core_amx); }
bool ProductLibraryHasAvx512Bf16() { return LibraryHas(dnnl_cpu_isa_avx512_core_bf16); }

}  // namespace hdps
