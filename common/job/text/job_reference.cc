// The table of job keys as Markdown, for docs/job_file.md.
#include "common/job/text/job_schema.h"
#include "common/job/text/optimizer_text.h"

namespace hdps {

namespace {

struct Section {
  std::string_view name;
  std::string_view title;
};
constexpr Section kSections[] = {
    {"job", "The whole"},         {"data", "data"},
    {"column", "data.columns[]"}, {"feature", "data.features[]"},
    {"model", "model"},           {"table", "model.tables[]"},
    {"layer", "model.layers[]"},  {"optimizer", "An optimizer"},
    {"init", "An init"},          {"policy", "A policy"},
    {"train", "train"},           {"parallel", "parallel"},
    {"checkpoint", "checkpoint"}, {"cluster", "cluster"},
};

std::string Number(double value) {
  if (value >= 1.8e19) return "2^64 - 1";
  if (value == 4294967295.0) return "2^32 - 1";
  const bool whole = value == static_cast<double>(static_cast<int64_t>(value));
  return PrintJsonLine(whole ? JsonValue::Signed(static_cast<int64_t>(value))
                             : JsonValue::Number(value));
}

std::string Range(const KeySpec& spec) {
  constexpr double kUnlimited = 1e300;
  return spec.max >= kUnlimited ? "" : " " + Number(spec.min) + " to " + Number(spec.max);
}

std::string Type(const KeySpec& spec) {
  const std::string of(spec.of);
  switch (spec.kind) {
    case KeyKind::kBool:
      return "true or false";
    case KeyKind::kInteger:
      return "whole number" + Range(spec);
    case KeyKind::kNumber:
      return "number" + Range(spec);
    case KeyKind::kBytes:
      return "bytes" + Range(spec);
    case KeyKind::kText:
      return "text";
    case KeyKind::kChoice: {
      std::string choices;
      for (const std::string& choice : ChoicesOf(spec.of)) {
        choices += (choices.empty() ? "`" : ", `") + choice + "`";
      }
      return choices;
    }
    case KeyKind::kTexts:
      return "list of texts";
    case KeyKind::kIntegers:
      return "list of whole numbers" + Range(spec);
    case KeyKind::kNumbers:
      return "list of numbers";
    case KeyKind::kObject:
      return of == spec.key ? "object" : "object (" + of + ")";
    case KeyKind::kObjects:
      return "list of objects (" + of + ")";
  }
  return "";
}

// "kind=adam|adamw" as "kind is adam or adamw".
std::string Condition(std::string_view only_if) {
  std::string text;
  for (const char c : only_if) {
    if (c == '=') {
      text += " is ";
    } else if (c == '|') {
      text += " or ";
    } else {
      text += c;
    }
  }
  return text;
}

// A bar would end the cell.
std::string Cell(std::string text) {
  for (size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

}  // namespace

std::string PrintKeyReference() {
  std::string text;
  for (const Section& section : kSections) {
    text += "\n### " + std::string(section.title) + "\n\n";
    text += "| key | value | default | counts where | meaning |\n|---|---|---|---|---|\n";
    for (const KeySpec& spec : JobKeys()) {
      if (spec.section != section.name) continue;
      const std::string standard(spec.default_text);
      text += "| `" + std::string(spec.key) + "` | " + Type(spec) + " | " +
              (standard.empty() ? "" : "`" + Cell(standard) + "`") + " | " +
              Condition(spec.only_if) + " | " + Cell(std::string(spec.doc)) + " |\n";
    }
    if (section.name == "optimizer") text += PrintOptimizerReference();
  }
  return text;
}

}  // namespace hdps
