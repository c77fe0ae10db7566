// Looks for the module relative to the file that this code was loaded from.
#include "worker/data/records/parquet_loader.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>
#include <string_view>

namespace hdps {
namespace {

constexpr const char* kMend =
    "; scripts/install_parquet.sh fetches what it is built with, then build again (docs/data.md, "
    "Parquet)";

// Tells how to get the libraries of a module that is there. `folder` is the module's.
std::string MendOfLibraries(const std::string& folder) {
  return "; install_parquet.sh --into=" + folder +
         " puts the libraries that it needs there; for the Python package, pip install "
         "'pyarrow==26.0.*' brings them (docs/data.md, Parquet)";
}

// Returns the folder of the program, or of the shared library that this code is in.
std::string OwnFolder() {
  Dl_info info;
  link_map* object = nullptr;
  const bool found = dladdr1(reinterpret_cast<const void*>(&LoadParquetReader), &info,
                             reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0;
  std::string path = found && object != nullptr ? object->l_name : "";
  if (path.empty()) {  // The program itself.
    std::array<char, PATH_MAX> target;
    const ssize_t bytes = readlink("/proc/self/exe", target.data(), target.size());
    if (bytes > 0) path.assign(target.data(), static_cast<size_t>(bytes));
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Result<HdpsReadParquetFunction*> LoadParquetReader() {
  const std::string own = OwnFolder();
  const std::string folders[] = {own, own + "/../" HDPS_MODULE_FOLDER};
  void* module = nullptr;
  for (const std::string& folder : folders) {
    const std::string place = folder + "/" + kParquetModule;
    if (access(place.c_str(), F_OK) != 0) continue;
    module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == nullptr) {
      const char* const why = dlerror();
      return Status(Code::kInvalidArgument,
                    "data.format is parquet, whose reader cannot be loaded: " +
                        std::string(why == nullptr ? place : why) + MendOfLibraries(folder));
    }
    break;
  }
  if (module == nullptr) {
    return Status(Code::kInvalidArgument,
                  "data.format is parquet, whose reader is a module that is not here: expected " +
                      std::string(kParquetModule) + " in " + folders[0] + " or " + folders[1] +
                      kMend);
  }
  void* const entry = dlsym(module, kReadParquetName);
  if (entry == nullptr) {
    return Status(Code::kInvalidArgument, std::string(kParquetModule) +
                                              " beside this program has no " + kReadParquetName +
                                              ": it is of another version; build again");
  }
  return reinterpret_cast<HdpsReadParquetFunction*>(entry);
}

}  // namespace hdps
