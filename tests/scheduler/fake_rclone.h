// A stand-in for rclone, with object storage in memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/programs/program.h"
#include "common/protocol/manifest.h"

namespace hdps {

// Has the commands that copies need, under the folder st:copies.
//
// Invariant: after each command, what is there holds a whole checkpoint if it ever did.
class FakeRclone : public Programs {
 public:
  explicit FakeRclone(FileSystem& files) : files_(files) {}

  Result<std::unique_ptr<RunningProgram>> Start(const std::vector<std::string>& words) override {
    const auto rclone = std::ranges::find(words, "rclone");
    std::vector<std::string> command, paths;
    bool after_flags = false;
    for (auto word = rclone + 1; word != words.end(); ++word) {
      if (*word == "--") {
        after_flags = true;
      } else if (after_flags) {
        paths.push_back(*word);
      } else if (!word->starts_with("--stats")) {
        command.push_back(*word);
      }
    }
    started.push_back(command[0] + " " + paths.back().substr(std::string("st:copies").size()));
    return std::unique_ptr<RunningProgram>(std::make_unique<Run>(*this, command, paths));
  }

  std::vector<std::string> started;          // "VERB /FOLDER" each.
  std::map<std::string, std::string> there;  // Contents by path.
  bool stands_still = false;                 // No command ends.
  int fail_at = -1;                          // This command fails, counted from 0.
  ProgramEnd failure = {.status = 1,
                        .output = "",
                        .output_cut = false,
                        .errors = "2022/11/28 03:23:43 Failed to copy: no route to host\n"};
  bool ever_whole = false;

 private:
  class Run : public RunningProgram {
   public:
    Run(FakeRclone& of, std::vector<std::string> command, std::vector<std::string> paths)
        : of_(of), command_(std::move(command)), paths_(std::move(paths)) {}
    std::optional<ProgramEnd> Wait(int64_t) override {
      if (of_.stands_still) return std::nullopt;
      if (of_.fail_at == static_cast<int>(of_.started.size()) - 1) return of_.failure;
      ProgramEnd end;
      end.status = of_.Execute(command_, paths_, &end.output);
      of_.CheckRestorable();
      return end;
    }
    std::string LastLine() const override {
      return "2022/11/28 03:23:44 NOTICE:     1.027 MiB / 2.861 MiB, 36%, 0 B/s, ETA -";
    }

   private:
    FakeRclone& of_;
    const std::vector<std::string> command_, paths_;
  };

  bool HasFolder(const std::string& folder) const {
    return std::ranges::any_of(
        there, [&](const auto& one) { return one.first.starts_with(folder + "/"); });
  }

  int Execute(const std::vector<std::string>& command, const std::vector<std::string>& paths,
              std::string* output) {
    const std::string& verb = command[0];
    const std::string manifest = paths[0] + "/" + kManifestName;
    if (verb == "copy") {
      const Result<std::vector<std::string>> names = files_.List(paths[0]);
      if (!names.ok()) return 3;
      for (const std::string& name : *names) {
        if (name == kManifestName) continue;
        there[paths[1] + "/" + name] = *ReadWholeFile(files_, JoinPath(paths[0], name), 1 << 20);
      }
      return 0;
    }
    if (verb == "copyto") {
      const Result<std::string> text = ReadWholeFile(files_, paths[0], 1 << 20);
      if (!text.ok()) return 3;
      there[paths[1]] = *text;
      return 0;
    }
    if (verb == "lsf") {
      for (const auto& [path, text] : there) {
        const std::string folder = path.substr(paths[0].size() + 1);
        *output += folder.substr(0, folder.find('/')) + "/\n";
      }
      return there.empty() ? 3 : 0;
    }
    if (!HasFolder(paths[0])) return 3;
    if (verb == "cat") {
      if (there.count(manifest) > 0) *output = there[manifest];
    } else if (verb == "delete") {
      there.erase(manifest);
    } else {
      EXPECT_EQ(verb, "purge");
      EXPECT_EQ(there.count(manifest), 0u) << "the manifest goes first";
      std::erase_if(there, [&](const auto& one) { return one.first.starts_with(paths[0] + "/"); });
    }
    return 0;
  }

  void CheckRestorable() {
    const bool whole = Newest() != kNoClock;
    EXPECT_TRUE(whole || !ever_whole) << "after " << started.back();
    ever_whole |= whole;
  }

 public:
  // Restores what is there into memory, and returns the clock of the newest whole checkpoint.
  Clock Newest() const {
    const std::unique_ptr<FileSystem> restored = NewMemoryFileSystem();
    for (const auto& [path, text] : there) {
      const std::string name = path.substr(std::string("st:").size());
      EXPECT_TRUE(restored->MakeDirectories(name.substr(0, name.rfind('/'))).ok());
      EXPECT_TRUE(WriteFileAtomically(*restored, name, text).ok());
    }
    const Result<FoundCheckpoint> found = FindCheckpoint(*restored, "copies");
    if (!found.ok()) return kNoClock;
    // A manifest without all its files is never there.
    EXPECT_THAT(found->refused, ::testing::Each(::testing::HasSubstr("there is no manifest")));
    return found->manifest.clock;
  }

 private:
  FileSystem& files_;
};

}  // namespace hdps
