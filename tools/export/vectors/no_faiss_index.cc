// Takes the place of faiss_index.cc in a build without libfaiss.
#include "tools/export/vectors/faiss_index.h"

namespace hdps {

bool HasFaiss() { return false; }

Status WriteFaissIndex(FileSystem&, const std::string& path, ItemIndex, std::span<const float>,
                       uint32_t) {
  return {Code::kInvalidArgument, path + ": this build of hdps lacks libfaiss"};
}

}  // namespace hdps
