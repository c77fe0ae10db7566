// Makes the answer to a request for predictions that came as a message.
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/protocol/predict/predict_messages.h"
#include "tools/serve/requests/score_request.h"
#include "tools/serve/served_model.h"

namespace hdps {

// Returns the request that a model understands. Errors: as TableOf() and CheckId(), and
// kInvalidArgument if there are no rows, or for an output that the model does not give, with the
// list of those that it does.
Result<ScoreRequest> ScoreRequestOf(const ModelNote& note, PredictRequest request);

// Returns the rows that a request with a table asks for. Errors: as TableOf(), and kInvalidArgument
// unless it has one column, of keys or of a feature's texts.
Result<LookupRequest> LookupRequestOf(PredictRequest request);

// Returns the outputs of an answer, those that were asked for or all: see ColumnsOf().
PredictReply ScoreReply(const ScoreAnswer& answer, std::span<const SentName> outputs);
PredictReply LookupReply(const LookupAnswer& answer);
// Returns what the model takes and gives.
PredictReply NoteReply(const ServedModel& model);
PredictReply RefusedReply(const Status& status);

}  // namespace hdps
