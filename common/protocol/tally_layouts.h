// The layouts of counts that messages of several files carry.
#pragma once

#include "common/protocol/message_codec.h"
#include "common/protocol/tallies.h"

namespace hdps {

template <>
struct Layout<LabelTally> {
  static void Describe(auto& fields, auto& tally) {
    fields.Number(tally.count);
    fields.Number(tally.least);
    fields.Number(tally.largest);
    fields.Number(tally.texts);
    fields.Number(tally.weightless);
    fields.Number(tally.unknown_ids);
  }
};

template <>
struct Layout<RoundCounts> {
  static void Describe(auto& fields, auto& counts) {
    fields.Number(counts.examples);
    fields.Number(counts.loss_sum);
    fields.Number(counts.bad_rows);
    fields.Table(counts.labels);
  }
};

}  // namespace hdps
