// Tests that the reader of rows takes a request's table for what a CSV file of the same values is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/tools/serve/requests/request_bodies.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/serve/requests/request_forms.h"
#include "worker/data/columnar/table_rows.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

Job SmallJob() {
  const auto job = ParseJob(R"({"data": {"train": ["rows.csv"],
      "columns": [{"name": "click", "type": "label"}, {"name": "color"}, {"name": "id"},
                  {"name": "tags", "type": "multi"}, {"name": "user"},
                  {"name": "price", "type": "numeric", "transform": "log1p"}],
      "features": [{"name": "cross", "kind": "crossed", "from": ["user", "color"]},
                   {"name": "range", "kind": "bucketized", "from": ["price"],
                    "boundaries": [0.1, 0.7, 3]}]},
    "model": {"type": "logistic"}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

Result<Batch> RowsOf(const Result<AskedScore>& asked) {
  HDPS_RETURN_IF_ERROR(asked.status());
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TableRows> rows,
                        TableRows::Make(SmallJob().data, asked->request.rows, "the request"));
  return rows->Read(0, rows->num_rows());
}

class RequestRowsTest : public ::testing::Test {
 protected:
  void ExpectAsFile(const std::string& lines, const Result<AskedScore>& asked) {
    const Result<Batch> rows = RowsOf(asked);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    WriteText(*files_, "rows.csv", lines);
    ReaderOptions in_order;
    in_order.shuffle = false;
    auto reader = NewBatchReader(*files_, SmallJob().data, {"rows.csv"}, in_order);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    const std::vector<Batch> file = ReadEpoch(**reader);
    ASSERT_EQ(file.size(), 1u);
    EXPECT_EQ(rows->num_examples, file[0].num_examples);
    EXPECT_EQ(rows->numeric, file[0].numeric);
    ASSERT_EQ(rows->sparse.size(), file[0].sparse.size());
    for (size_t f = 0; f < rows->sparse.size(); ++f) {
      EXPECT_EQ(rows->sparse[f].offsets, file[0].sparse[f].offsets) << f;
      EXPECT_EQ(rows->sparse[f].keys, file[0].sparse[f].keys) << f;
    }
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(RequestRowsTest, EachFormIsReadAsAFile) {
  const std::string lines =
      "0,red,-7,a|b,u1,0.5\n0,,0,c,u1,-2\n0,,9223372036854775807,,u1,\n"
      "0,\"bl\xc3\xbc \"\"x\"\"\",12,a|a,u1,1e10\n";
  const std::vector<InputText> inputs = SmallInputs();
  for (const bool binary : {false, true}) {
    const Body body = InferBody(inputs, "", [&](size_t) { return binary; });
    ExpectAsFile(lines, ReadInfer(SmallModel(), body.bytes, body.json_bytes));
  }
  ExpectAsFile(lines, ReadPredict(SmallModel(), SmallInstances()));
  ExpectAsFile(lines, ReadPredict(SmallModel(), SmallColumns()));
}

// Numbers that float32 rounds, and lists, numbers and texts that all rows share.
TEST_F(RequestRowsTest, NumbersAndSharedInputsAreReadAsAFile) {
  const std::string lines = "0,x,5,a|c,1.5,0.7\n0,y,5,a|c,1.5,0.1\n0,z,5,a|c,1.5,2.3\n";
  const std::string colors =
      R"({"name":"color","shape":[3],"datatype":"BYTES","data":["x","y","z"]},
    {"name":"id","shape":[1],"datatype":"INT32","data":[5]},
    {"name":"tags","shape":[1,3],"datatype":"BYTES","data":["a",null,"c"]},
    {"name":"user","shape":[1],"datatype":"BYTES","data":["1.5"]},)";
  for (const std::string type : {"FP32", "FP64"}) {
    const std::string body = R"({"inputs":[)" + colors +
                             R"({"name":"price","shape":[3,1],"datatype":")" + type +
                             R"(","data":[0.7,0.1,2.3]}]})";
    ExpectAsFile(lines, ReadInfer(SmallModel(), body, {}));
  }
  ExpectAsFile(lines, ReadPredict(SmallModel(), R"({"instances":[{"color":"x","price":0.7},
    {"color":"y","price":0.1},{"price":2.3,"color":"z"}],
    "context":{"id":5,"tags":["a","c"],"user":"1.5"}})"));
  ExpectAsFile("0,x,5,a|c,u,3\n0,y,5,a|c,u,3\n",
               ReadPredict(SmallModel(), R"({"inputs":{"color":["x","y"],"price":[3],"id":["5"],
    "tags":["a|c"],"user":["u"]}})"));
}

TEST_F(RequestRowsTest, TheReaderNamesWhatItCannotTake) {
  const auto refusal = [](const std::string& body) {
    return RowsOf(ReadPredict(SmallModel(), body)).status().message();
  };
  EXPECT_THAT(refusal(R"({"instances":[{"color":"x"}]})"), HasSubstr("'id'"));
  EXPECT_THAT(refusal(R"({"instances":[{"color":["x"],"id":1,"tags":"a","user":"u","price":1}]})"),
              HasSubstr("column 'color' has the type list of BYTES: expected one value a row"));
}

}  // namespace
}  // namespace hdps
