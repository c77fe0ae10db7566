// The words of MindSpore's users: what a job takes as its own word, and what it answers to others.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/job/text/setting.h"

namespace hdps {

// A key or a value as MindSpore spells it.
struct MindSporeWord {
  std::string_view spelled;
  // Where it is met: "optimizer.kind" for a value of that setting, "layer." for a key of that
  // section, and empty for a key of any section. The names are those of Section::name.
  std::string_view where = {};
  // The word of the job file that it is read as. Empty if the job is refused instead, with the
  // right side of the row.
  std::string_view taken_as = {};
};

// One line of the table in docs/how_to/coming_from.md, in Markdown, with the words that it answers.
// A row without words is of things that no job file can hold.
struct MindSporeRow {
  std::string_view mindspore, here;
  std::span<const MindSporeWord> words = {};
};
std::span<const MindSporeRow> MindSporeRows();

// Replaces words in the tree of a job text by those of the settings, so that it can be checked and
// read: a word of a choice in other letters (DATA_PARALLEL, LeakyReLU), and the words above that
// have a `taken_as`. Everything else stays as it is.
void TakeForeignWords(const Section& section, JsonValue* object);

// Returns what to say of a key that the section does not have; empty if MindSpore has none such.
std::string AnswerToKey(const Section& section, std::string_view key);
// Returns what to say of a word that the setting does not have; empty if MindSpore has none such.
std::string AnswerToValue(const Section& section, const Setting& setting, std::string_view word);

}  // namespace hdps
