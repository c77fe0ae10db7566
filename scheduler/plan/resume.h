// Whether a run goes on from what its folder holds: --resume.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/base/nearest_name.h"
#include "common/base/status.h"

namespace hdps {

enum class Resume : uint8_t {
  kAuto,     // From the newest whole checkpoint of this job, else from the beginning.
  kNever,    // From the beginning; refused where there is a checkpoint.
  kChanged,  // As kAuto, and settings that may change (OnResume) may differ from the checkpoint's.
};
constexpr auto WordsOf(Resume) {
  using enum Resume;
  return EnumWords(kAuto, "auto", kNever, "never", kChanged, "changed");
}

inline constexpr const char* kResumeHelp =
    "What a run does with checkpoints in --out: auto goes on from the newest one, never begins "
    "anew and refuses an --out that holds one, changed goes on also where settings that may change "
    "differ (docs/how_to/resume.md)";

// The value of --resume. kInvalidArgument names it and what would be right.
inline Result<Resume> ReadResume(const std::string& word) {
  std::vector<std::string> words;
  for (const auto& known : WordsOf(Resume{})) {
    if (known.word == word) return known.value;
    words.emplace_back(known.word);
  }
  return Status(Code::kInvalidArgument,
                "--resume=" + word + ": expected auto, never or changed" + DidYouMean(word, words));
}

}  // namespace hdps
