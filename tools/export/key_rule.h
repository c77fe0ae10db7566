// How a key is made of a value, in words that another program can follow.
#pragma once

#include <string>

namespace hdps {

struct Job;

// Returns a JSON object: for each sparse feature its `tables`, and how its keys are made. `of` is
// "text": XXH3 of the value's bytes, seeded by `salt`; "id": a mix of `salt` and the number, below
// `vocab_size`; "bucket": as text, of the number of the bucket among `boundaries` of the column
// `from`; "cross": a mix of the keys of the features `from`, modulo `hash_buckets` if that is not
// 0. Salts are texts of 16 hexadecimal digits. docs/export.md has the mix.
std::string DescribeKeys(const Job& job);

}  // namespace hdps
