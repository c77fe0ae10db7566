// The parts of reading a job: the tree into structs, and the rules that go beyond one key.
#pragma once

#include "common/job/job.h"
#include "common/job/text/job_schema.h"

namespace hdps {

// Fills everything but the model from a tree that passed CheckKeys.
void ReadSections(const JsonValue& root, Job* job);
// Fills model and tables; needs job->data.
Status ReadModel(const JobSource& source, Job* job);

// The rules between keys; normalises what has two spellings (ssp with bound 0 is sync).
Status CheckJob(const JobSource& source, Job* job);

// Names what the data has and the model cannot use. The job has passed every other check.
void WarnOfInputs(Job* job);

// Copies the member `key` to `*to` if there is one.
void ReadKey(const JsonValue& object, std::string_view key, bool* to);
void ReadKey(const JsonValue& object, std::string_view key, uint32_t* to);
void ReadKey(const JsonValue& object, std::string_view key, uint64_t* to);
void ReadKey(const JsonValue& object, std::string_view key, int64_t* to);
void ReadKey(const JsonValue& object, std::string_view key, float* to);
void ReadKey(const JsonValue& object, std::string_view key, double* to);
void ReadKey(const JsonValue& object, std::string_view key, std::string* to);
void ReadKey(const JsonValue& object, std::string_view key, std::vector<std::string>* to);
void ReadKey(const JsonValue& object, std::string_view key, std::vector<uint32_t>* to);
void ReadKey(const JsonValue& object, std::string_view key, std::vector<double>* to);
// Of a kBytes key.
void ReadBytes(const JsonValue& object, std::string_view key, uint64_t* to);

// The number of the choice that `object` makes for a kChoice key, or `otherwise`.
size_t ChoiceIn(const JsonValue& object, std::string_view section, std::string_view key,
                size_t otherwise);
// The text of choice `number` of a kChoice key.
std::string ChoiceText(std::string_view section, std::string_view key, size_t number);

// The choices of a key stand in the order of its enum.
template <typename Enum>
void ReadChoice(const JsonValue& object, std::string_view section, std::string_view key, Enum* to) {
  *to = static_cast<Enum>(ChoiceIn(object, section, key, static_cast<size_t>(*to)));
}

}  // namespace hdps
