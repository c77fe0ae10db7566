// The object of a job file that gives an optimizer: all of it comes from the optimizers' records.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/job/optimizers/optimizers.h"
#include "common/job/text/job_schema.h"

namespace hdps {

// The keys of the section "optimizer": the kind, and every setting that some optimizer has.
std::span<const KeySpec> OptimizerKeys();

// The optimizer under `key`, its missing settings taken from `base`, or, when it is of another
// kind, from that kind's own defaults.
OptimizerSpec ReadOptimizer(const JsonValue& object, std::string_view key,
                            const OptimizerSpec& base);

// The kind and its settings.
JsonValue PrintOptimizer(const OptimizerSpec& spec);

// What each kind does, as a table in Markdown, for docs/job_file.md.
std::string PrintOptimizerReference();

}  // namespace hdps
