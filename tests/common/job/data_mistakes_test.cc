// Tests job files: messages for mistakes in the parts of workers and in the vocabulary of the data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

TEST(DataMistakesTest, OfPartsAndVocabulariesAreAnsweredWithPlaceValueAndMend) {
  const std::string parts = "data.parts=[700, 200, 124]", of_vocabulary = "data.vocabulary.";
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{parts, "train.batch_size=1000"},
       {"data.parts", "sum is 1024", "train.batch_size is 1000", "make them equal"}},
      {{parts, "parallel.device_num=2"}, {"data.parts", "3 numbers for 2 workers", "one for each"}},
      {{parts, "parallel.parallel_mode=stand_alone"}, {"data.parts", "1 worker (stand_alone)"}},
      {{"data.parts=[1024, 0]"}, {"data.parts", "0", "from 1"}},
      {{parts, "parallel.dataset_strategy=full_batch"},
       {"data.parts", "rows of its own", "dataset_strategy = data_parallel"}},
      {{parts, "parallel.parallel_mode=auto_parallel", "parallel.dense_exchange=allreduce"},
       {"data.parts", "parallel.parallel_mode"}},
      {{parts, "train.micro_batches=125"}, {"train.micro_batches", "125", "124 examples"}},
      {{of_vocabulary + "file=v.keys"}, {of_vocabulary + "checksum", "missing"}},
      {{of_vocabulary + "file=v.keys", of_vocabulary + "checksum=0123456789ABCDEF"},
       {of_vocabulary + "checksum", "0123456789ABCDEF", "16 hexadecimal digits"}},
      {{of_vocabulary + "file=\"\"", of_vocabulary + "checksum=0123456789abcdef"},
       {of_vocabulary + "file", "no file"}},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(testing::PrintToString(mistake.overrides));
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  EXPECT_THAT(Good({parts, "parallel.device_num=3"}).data.parts,
              testing::ElementsAre(700u, 200u, 124u));
}

}  // namespace
}  // namespace hdps
