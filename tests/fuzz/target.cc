// Registers the targets of a program, and checks every refusal.
#include "tests/fuzz/target.h"

#include <glog/logging.h>

#include <utility>

namespace hdps::fuzz {
namespace {

std::vector<Target>& All() {
  static std::vector<Target> all;
  return all;
}

bool repairs_checksums = true;

}  // namespace

const std::vector<Target>& Targets() { return All(); }
AddTarget::AddTarget(Target target) { All().push_back(std::move(target)); }

bool TakeChecksumRepair(Input& input) { return input.Take() % 2 == 1 && repairs_checksums; }
void LeaveChecksums() { repairs_checksums = false; }

Verdict Refused(const Status& status, Code expected) {
  CHECK(!status.ok());
  CHECK(status.code() == expected) << CodeName(status.code()) << ": " << status.message();
  CHECK(!status.message().empty());
  return Verdict::kRefused;
}

void PutFile(FileSystem& files, const std::string& path, std::string_view bytes) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) CHECK(files.MakeDirectories(path.substr(0, slash)).ok());
  const Status status = WriteFileAtomically(files, path, std::string(bytes));
  CHECK(status.ok()) << status.message();
}

}  // namespace hdps::fuzz
