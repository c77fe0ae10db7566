// Runs the target that this program is named after, "fuzz_NAME", under libFuzzer. With
// --seeds=FOLDER it writes the target's seed inputs there instead; with --unsealed no checksum is
// made valid.
#include <glog/logging.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

const Target* chosen = nullptr;

void WriteSeeds(const std::string& folder) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  CHECK(files->MakeDirectories(folder).ok()) << folder;
  size_t number = 0;
  for (const std::string& seed : chosen->seeds()) {
    const std::string path = JoinPath(folder, "seed_" + std::to_string(number++));
    const Status status = WriteFileAtomically(*files, path, seed);
    CHECK(status.ok()) << status.message();
  }
}

void Start(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_FATAL;  // Inputs would make roles log millions of lines.
  const std::string program = argv[0];
  for (const Target& target : Targets()) {
    if (program.ends_with("fuzz_" + target.name)) chosen = &target;
  }
  CHECK(chosen != nullptr) << program << " has no target of this name";
  // libFuzzer ignores arguments that begin with two dashes.
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--unsealed") LeaveChecksums();
  }
  const std::string_view flag = "--seeds=";
  if (argc != 2 || !std::string_view(argv[1]).starts_with(flag)) return;
  WriteSeeds(argv[1] + flag.size());
  std::exit(0);
}

}  // namespace
}  // namespace hdps::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  hdps::fuzz::Start(*argc, *argv);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hdps::fuzz::chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
