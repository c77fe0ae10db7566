// Formats tables of plain text.
#include "tools/prepare/prepare_report.h"

#include <algorithm>
#include <cmath>

#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "worker/data/data_description.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

using Line = std::vector<std::string>;
constexpr size_t kColumnsShownMax = 200;

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Counts characters of UTF-8.
size_t WidthOf(const std::string& text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, ContinuesCharacter));
}

std::string Short(const std::string& text, size_t most) {
  const std::string shown = Printable(text);
  if (shown.size() <= most) return shown;
  size_t bytes = most - 3;
  while (bytes > 0 && ContinuesCharacter(shown[bytes])) --bytes;
  return shown.substr(0, bytes) + "...";
}

std::string OneLine(const std::string& text) { return EscapeUntrusted(text, std::string::npos); }

std::string Number(double value) { return ShowNumber("%.5g", value); }

std::string Percent(double part, double all) {
  return all == 0 ? "-" : ShowNumber("%.1f%%", 100 * part / all);
}

std::string DistinctOf(const DistinctValues& distinct) {
  return (distinct.exact() ? "" : "about ") + ShowWhole(distinct.distinct());
}

std::string FrequentOf(const ColumnProfile& column) {
  std::string text;
  for (const auto& value : column.frequent.Top(2)) {
    text += (text.empty() ? "" : ", ") + Short(value.text, 16) + " " +
            (column.frequent.error() > 0 ? ">=" : "") +
            Percent(static_cast<double>(value.count), static_cast<double>(column.cells));
  }
  return text;
}

std::string PlanOf(const ColumnPlan& column) {
  std::string text(WordOf(column.spec.type));
  if (column.spec.transform == Transform::kLog1p) text += ", log1p";
  if (column.spec.transform == Transform::kStandardize) text += ", standardize";
  if (!column.boundaries.empty()) {
    text += ", " + std::to_string(column.boundaries.size() + 1) +
            (column.log_buckets ? " log buckets" : " buckets");
  }
  return text + (column.why.empty() ? "" : " (" + OneLine(column.why) + ")");
}

// Returns how many values of the column have keys of their own; empty without a vocabulary.
std::string FrequentValuesOf(const ColumnPlan& plan, const JobWish& wish) {
  if (wish.vocabulary == nullptr) return "";
  const std::vector<ValuesOfSpace>& spaces = wish.vocabulary->spaces;
  const auto of = std::ranges::find(spaces, plan.spec.key_space(), &ValuesOfSpace::space);
  if (of == spaces.end()) return "";
  return "; keys for " + Whole(of->frequent) + " of " + Whole(of->values) + " values";
}

Line LineOf(const ColumnProfile& column, const ColumnPlan& plan, const JobWish& wish,
            uint64_t rows) {
  uint64_t missing = column.empty;
  for (const auto& [text, count] : column.missing) missing += count;
  // A mean is shown only for amounts, not for identifiers.
  const bool amounts = plan.spec.type == ColumnType::kNumeric ||
                       plan.spec.type == ColumnType::kLabel ||
                       plan.spec.type == ColumnType::kWeight;
  const Moments numbers = amounts ? column.numbers : Moments();
  Line line = {Short(column.name, 24), ShowWhole(static_cast<double>(column.filled())),
               Percent(static_cast<double>(missing), static_cast<double>(rows)),
               DistinctOf(column.distinct)};
  for (const double value : {numbers.min(), numbers.max(), numbers.mean(), numbers.deviation()}) {
    line.push_back(numbers.count() == 0 ? "" : Number(value));
  }
  line.push_back(FrequentOf(column));
  line.push_back(PlanOf(plan) + FrequentValuesOf(plan, wish));
  return line;
}

// Makes columns as wide as their widest cell; numbers are aligned right.
std::string Table(const std::vector<Line>& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (const Line& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], WidthOf(line[c]));
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string blanks(widths[c] - WidthOf(line[c]), ' ');
      const bool right = c >= 1 && c <= 7;
      row += (right ? blanks + line[c] : line[c] + blanks) + "  ";
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string Bytes(double bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return ShowNumber(unit == 0 ? "%.0f " : "%.1f ", bytes) + units[unit];
}

std::string FormatOf(const DataLayout& layout) {
  std::string text(WordOf(layout.format));
  if (layout.format != DataFormat::kCsv) return text;
  text += layout.delimiter == "\t" ? ", tabs between cells"
                                   : ", '" + Printable(layout.delimiter) + "' between cells";
  text += layout.header ? ", with a header" : ", without a header";
  if (!layout.comment.empty()) text += ", comments begin with '" + Short(layout.comment, 24) + "'";
  return text;
}

std::string LabelOf(const DataProfile& profile, const DataPlan& plan) {
  if (plan.label == kNoColumn) {
    return "none: every row is one of label 1, beside " + std::to_string(plan.negatives) +
           " made of the same '" + Printable(profile.columns[plan.user].name) + "' with another '" +
           Printable(profile.columns[plan.item].name) + "'";
  }
  const std::string name = Printable(profile.columns[plan.label].name) + ": ";
  if (plan.task == TaskKind::kClasses) return name + ShowWhole(plan.num_classes) + " classes";
  if (plan.task == TaskKind::kRating) {
    return name + "numbers of mean " + Number(plan.label_mean) + ", deviation " +
           Number(plan.label_deviation);
  }
  return name + "1 in " + ShowNumber("%.2f%%", 100 * plan.positive_share) + " of the rows";
}

}  // namespace

std::string PrepareReport(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  std::string text = Counted(profile.files.size(), "file") + ", " + Counted(profile.rows, "row") +
                     ": " + FormatOf(profile.layout);
  if (!plan.missing.empty()) text += "; '" + plan.missing + "' is a missing cell";
  text += "\n\n";
  std::vector<Line> lines = {{"column", "filled", "missing", "distinct", "min", "max", "mean",
                              "deviation", "most frequent", "the job takes it as"}};
  for (size_t c = 0; c < profile.columns.size() && c < kColumnsShownMax; ++c) {
    lines.push_back(LineOf(profile.columns[c], plan.columns[c], wish, profile.rows));
  }
  text += Table(lines);
  if (profile.columns.size() > kColumnsShownMax) {
    text += "and " + Whole(profile.columns.size() - kColumnsShownMax) + " more columns\n";
  }
  const TableEstimate tables = EstimateTables(plan, wish);
  text += "\nlabel         " + LabelOf(profile, plan) + "\n";
  text += "keys          " + ShowWhole(plan.keys) + " distinct, " +
          Percent(plan.keys_twice, plan.keys) + " of them come twice or more\n";
  if (wish.vocabulary != nullptr) {
    const Vocabulary& values = wish.vocabulary->vocabulary;
    text += "vocabulary    " + Counted(values.size(), "value") + " that come " +
            Whole(values.min_count()) +
            " times or more in the rows trained on; the others of a feature share one key\n";
  }
  text += "memory        about " + Bytes(tables.bytes) + " of servers for " +
          ShowWhole(tables.rows) + " rows of embedding tables with optimizer state\n";
  if (plan.admit_twice) {
    text +=
        "admission     most keys come once: a key gets a row with its second update "
        "(model.policy.admit_after)\n";
  }
  for (const auto& [title, reason] : JobReasons(profile, plan, wish)) {
    text += title + std::string(14 - title.size(), ' ') + reason + "\n";
  }
  text += "evaluation    ";
  if (!wish.eval.empty()) {
    text += Counted(wish.eval.size(), "file") + ", the first " + OneLine(wish.eval[0]);
  } else if (wish.validation_share > 0) {
    text += ShowNumber("%.0f%%", 100 * wish.validation_share) +
            (wish.validation_block_lines == 0
                 ? " of the rows"
                 : " of the blocks of " + Whole(wish.validation_block_lines) + " lines") +
            ", which are never trained on (data.validation_share)";
  } else {
    text += "none: give files with --eval=FILE";
  }
  text += "\n";
  for (const std::string& note : plan.notes) text += "look at       " + OneLine(note) + "\n";
  return text;
}

}  // namespace hdps
