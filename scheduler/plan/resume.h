// The values of --resume: whether a run continues from the checkpoints in its folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/base/nearest_name.h"
#include "common/base/status.h"

namespace hdps {

enum class Resume : uint8_t {
  kAuto,   // Resumes from the newest whole checkpoint of this job, or else begins at step 0.
  kNever,  // Begins at step 0; refused if there is a checkpoint.
  // Like kAuto, but settings that may change (OnResume) may differ from the checkpoint's.
  kChanged,
};
constexpr auto WordsOf(Resume) {
  using enum Resume;
  return EnumWords(kAuto, "auto", kNever, "never", kChanged, "changed");
}

inline constexpr const char* kResumeHelp =
    "What a run does with checkpoints in --out: auto goes on from the newest one, never begins "
    "anew and refuses an --out that holds one, changed goes on also where settings that may change "
    "differ (docs/how_to/resume.md)";

// Parses --resume. kInvalidArgument names the value and the valid ones.
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
