// Copies outputs into the sections of a reply.
#include "tools/serve/messages/predict_answer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "tools/serve/messages/column_sections.h"
#include "tools/serve/requests/answer_columns.h"
#include "tools/serve/requests/request_place.h"
#include "tools/serve/requests/request_table.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

std::vector<SentTensor> SentTensors(const std::vector<TensorNote>& notes) {
  std::vector<SentTensor> tensors;
  tensors.reserve(notes.size());
  for (const TensorNote& note : notes) tensors.push_back({note.name, note.datatype, note.width});
  return tensors;
}

}  // namespace

Result<ScoreRequest> ScoreRequestOf(const ModelNote& note, PredictRequest request) {
  ScoreRequest score;
  score.top_k = request.top_k == 0 ? kTopKDefault : request.top_k;
  for (const SentName& output : request.outputs) {
    if (std::ranges::find(note.outputs, output.name, &TensorNote::name) == note.outputs.end()) {
      std::vector<std::string> known;
      std::string list;
      for (const TensorNote& one : note.outputs) {
        list += (list.empty() ? "" : ", ") + one.name;
        known.push_back(one.name);
      }
      return Status(Code::kInvalidArgument, "there is no output '" + Printable(output.name) +
                                                "'; there are " + list +
                                                DidYouMean(output.name, known));
    }
    const ScoreOutput wanted = OutputOfName(output.name);
    if (std::ranges::count(score.outputs, wanted) == 0) score.outputs.push_back(wanted);
  }
  HDPS_RETURN_IF_ERROR(CheckId({"the id"}, request.id));
  score.id = request.id;
  // A batch without rows cannot be cut into answers, and HTTP refuses such a request too.
  if (request.rows == 0) return Wrong({"the request"}, " has no rows: expected at least one");
  HDPS_ASSIGN_OR_RETURN(score.rows, TableOf(std::move(request)));
  return score;
}

Result<LookupRequest> LookupRequestOf(PredictRequest request) {
  LookupRequest lookup;
  lookup.table = std::move(request.table);
  const bool is_one = request.columns.size() == 1 && request.columns[0].cells == request.rows;
  const SentColumn column = is_one ? request.columns[0] : SentColumn();
  const bool has_keys = column.name.empty() && column.form == CellForm::kIntegers;
  const bool has_texts = !column.name.empty() && column.form == CellForm::kTexts && !column.lists;
  if (!is_one || !(has_keys || has_texts)) {
    return Status(Code::kInvalidArgument,
                  "the request for rows of a table has " + std::to_string(request.columns.size()) +
                      " columns: expected one, of keys without a name, or of texts with the name "
                      "of their feature");
  }
  if (request.rows == 0) {
    return Status(Code::kInvalidArgument,
                  "the request for rows of a table has no keys: expected at least one");
  }
  lookup.feature = column.name;
  HDPS_ASSIGN_OR_RETURN(lookup.values, TableOf(request));
  if (has_texts) return lookup;
  lookup.values = nullptr;
  for (const int64_t bits : request.integers.As<int64_t>()) {
    lookup.keys.push_back(static_cast<Key>(bits));
  }
  return lookup;
}

PredictReply LookupReply(const LookupAnswer& answer) {
  PredictReply reply;
  reply.step = answer.step;
  reply.rows = static_cast<uint32_t>(answer.has_row.size());
  reply.ready = true;
  reply.outputs = {{"rows", answer.dim, false}, {"has_row", 1, false}};
  std::vector<float> numbers = answer.rows;
  for (const bool has_row : answer.has_row) numbers.push_back(has_row ? 1.0F : 0.0F);
  reply.numbers = Buffer::CopyOf<float>(numbers);
  return reply;
}

PredictReply ScoreReply(const ScoreAnswer& answer, std::span<const SentName> outputs) {
  PredictReply reply;
  reply.step = answer.step;
  reply.rows = static_cast<uint32_t>(answer.rows);
  reply.ready = true;
  std::vector<float> numbers;
  std::vector<uint32_t> ends;
  std::string texts;
  std::vector<std::string> names;
  for (const SentName& output : outputs) names.push_back(output.name);
  for (const OutputColumn* const column : ColumnsOf(answer, names)) {
    const OutputColumn& output = *column;
    reply.outputs.push_back({output.name, output.width, !output.texts.empty()});
    numbers.insert(numbers.end(), output.numbers.begin(), output.numbers.end());
    if (output.texts.empty()) continue;
    ends.push_back(static_cast<uint32_t>(texts.size()));
    for (const std::string& text : output.texts) {
      texts += text;
      ends.push_back(static_cast<uint32_t>(texts.size()));
    }
  }
  reply.numbers = Buffer::CopyOf<float>(numbers);
  reply.ends = Buffer::CopyOf<uint32_t>(ends);
  reply.texts = Buffer::CopyOf(std::as_bytes(std::span(texts)));
  return reply;
}

PredictReply NoteReply(const ServedModel& model) {
  PredictReply reply;
  reply.model = model.note().name;
  reply.takes = SentTensors(model.note().inputs);
  reply.gives = SentTensors(model.note().outputs);
  reply.ready = model.ready();
  if (reply.ready) reply.step = model.step();
  return reply;
}

PredictReply RefusedReply(const Status& status) {
  PredictReply reply;
  reply.code = status.code();
  reply.message = status.message();
  return reply;
}

}  // namespace hdps
