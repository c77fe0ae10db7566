// Configures oneDNN, and keeps OpenMP from starting threads for it.
#include "kernels/products/product_library.h"

#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include <optional>

// Declared here, for the OpenMP library that oneDNN uses, since not every compiler has omp.h.
extern "C" void omp_set_num_threads(int count);

namespace hdps {
namespace {

// Sets the limit, which oneDNN takes once before its first product. Its plainest loops use SSE4.1.
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
  omp_set_num_threads(1);  // A setting of the calling thread only, so each thread makes it.
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
