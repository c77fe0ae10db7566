// Tests hdps export --format=vectors on files in memory: vectors beside predictions, files of items
// in every form, repeats, and refusals.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/job/job_facts.h"
#include "tests/tools/predict_fixture.h"
#include "tools/export/export.h"
#include "tools/export/vectors/faiss_index.h"
#include "tools/scoring/scored_data.h"
#include "tools/scoring/scored_job.h"
#include "tools/scoring/towers/tower_vectors.h"
#include "worker/data/whole_files/text_rows.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "item"},
       {"name": "age", "type": "numeric"}, {"name": "tags", "type": "multi"},
       {"name": "title", "type": "skip"}, {"name": "buyer", "type": "group", "from": "user"}])";
constexpr const char* kModel =
    R"("type": "two_tower", "embedding_dim": 4, "hidden": [8, 6], "user_features": ["user"],
       "item_features": ["item", "tags"], "temperature": 0.5)";
constexpr uint32_t kDim = 6;
constexpr const char* kRows =
    "1,a,i,1,p|q,The I\n0,b,j,2,q,The J\n1,a,k,3,,The K\n0,c,i,4,p|q,The I\n";

struct Vectors {
  std::vector<float> floats;  // [n, kDim]
  std::string texts;
  nlohmann::json header;
};

class VectorsTest : public PredictTest {
 protected:
  void SetUp() override {
    WriteText(*files_, "t", kRows);
    Train("run", std::string(R"("train": ["t"], )") + kColumns, kModel);
  }

  ExportRequest RequestOf(const std::string& items) {
    WriteText(*files_, "items", items);
    ExportRequest request;
    request.common.checkpoint = "run";
    request.common.out = "vectors";
    request.format = "vectors";
    request.items = "items";
    return request;
  }
  Status Export(const ExportRequest& request) {
    EXPECT_TRUE(files_->RemoveAll("vectors").ok());
    std::ostringstream told;
    const Status status = RunExport(request, *files_, *executor_, told);
    told_ = told.str();
    EXPECT_EQ(files_->Exists("vectors"), status.ok());
    EXPECT_FALSE(files_->Exists("vectors.tmp"));
    return status;
  }
  Vectors Exported(const ExportRequest& request) {
    const Status status = Export(request);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    Vectors vectors;
    vectors.texts = *ReadWholeFile(*files_, "vectors/items.txt", 1u << 20);
    const std::string bytes = *ReadWholeFile(*files_, "vectors/items.safetensors", 1u << 20);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    vectors.header = nlohmann::json::parse(bytes.substr(sizeof(length), length));
    const std::string data = bytes.substr(sizeof(length) + length);
    vectors.floats.resize(data.size() / sizeof(float));
    std::memcpy(vectors.floats.data(), data.data(), data.size());
    EXPECT_EQ(vectors.header["vectors"]["shape"],
              nlohmann::json({vectors.floats.size() / kDim, kDim}));
    return vectors;
  }
  std::string Refused(const ExportRequest& request) {
    const Status status = Export(request);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
    return status.message();
  }

  std::string told_;
};

// A score is a sum of kDim products over the temperature: each of its roundings is at most half an
// epsilon of the sum of magnitudes, which the lengths of the vectors bound.
TEST_F(VectorsTest, ProductsOfVectorsAreTheScoresOfPredictions) {
  WriteText(*files_, "q", "1,a,i,1,p|q,x\n0,b,j,2.5,q,x\n1,z,k,-3,p,x\n0,c,s,4,t|p,x\n");
  const CommonFlags flags = FlagsOf("run");
  const auto data = ScoredData::Open(flags, *files_, *executor_);
  ASSERT_TRUE(data.ok()) << data.status().message();
  const auto job = JobOf(flags, *files_);
  const auto loaded =
      CheckpointModel::Load(*files_, job->job, "run", WhichCheckpoint::kNewest, *executor_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto users = TowerVectors::New(**loaded, Tower::kUser, *executor_);
  const auto items = TowerVectors::New(**loaded, Tower::kItem, *executor_);
  ASSERT_TRUE(users.ok() && items.ok()) << users.status().message();
  EXPECT_EQ((*items)->dim(), kDim);
  EXPECT_EQ((*items)->features().sparse, (std::vector<std::string>{"item", "tags"}));
  EXPECT_TRUE((*items)->features().numeric.empty());
  EXPECT_EQ((*users)->features().numeric, std::vector<std::string>{"age"});
  const FeatureNames names = FeaturesOf(job->job.data);
  const float bias = ScoreBias(**loaded);
  EXPECT_NE(bias, 0);
  double apart = 0;
  const auto take = [&](const ScoredBatch& scored) -> Status {
    const Batch& batch = scored.batch;
    const std::span<const float> scores = scored.scores;
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> user, (*users)->Of(batch, names));
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> item, (*items)->Of(batch, names));
    EXPECT_EQ(scores.size(), 4u);
    for (size_t i = 0; i < scores.size(); ++i) {
      double product = 0, length = 0;
      for (size_t d = 0; d < kDim; ++d) {
        product += double{user[i * kDim + d]} * double{item[i * kDim + d]};
        length += double{item[i * kDim + d]} * double{item[i * kDim + d]};
      }
      // A component is divided by a norm of kDim rounded squares; its own square doubles the error.
      EXPECT_NEAR(length, 1, 2 * (kDim + 3) * 0x1p-24);
      apart = std::max(apart, std::abs(product + double{bias} - double{scores[i]}));
    }
    return {};
  };
  ASSERT_TRUE((*data)->Score({.labels = false}, take).ok());
  constexpr double kEpsilon = 0x1p-24, kTemperature = 0.5;
  printf("products and scores are at most %.2g apart\n", apart);
  EXPECT_LE(apart, kEpsilon * (kDim + 2) / kTemperature);
}

// The export reads the rows of its items alone, and gives the bits that the whole model gives.
TEST_F(VectorsTest, VectorsAreThoseOfTheWholeModel) {
  const auto job = JobOf(FlagsOf("run"), *files_);
  const auto loaded =
      CheckpointModel::Load(*files_, job->job, "run", WhichCheckpoint::kNewest, *executor_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  (*loaded)->set_unknown_keys(UnknownKeys::kZero);
  const auto tower = TowerVectors::New(**loaded, Tower::kItem, *executor_);
  ASSERT_TRUE(tower.ok()) << tower.status().message();
  const std::string rows = std::string(kRows) + "0,c,new,4,q|unheard,x\n";
  WriteText(*files_, "items", rows);
  const FeatureNames names = FeaturesOf(job->job.data);
  const auto whole_rows = NewTextRows(*files_, job->job.data, {"items"}, "item");
  ASSERT_TRUE(whole_rows.ok()) << whole_rows.status().message();
  const auto batch = (*whole_rows)->Next(100);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  std::vector<float> whole = *(*tower)->Of(batch->rows, names);
  ASSERT_EQ(whole.size(), 5 * kDim);
  whole.erase(whole.begin() + 3 * kDim, whole.begin() + 4 * kDim);  // The item `i` again.
  EXPECT_EQ(Exported(RequestOf(rows)).floats, whole);
}

TEST_F(VectorsTest, ItemsMayStandAloneOrInWholeRows) {
  const Vectors whole = Exported(RequestOf(kRows));
  EXPECT_EQ(whole.texts, "i\nj\nk\n") << "in the file's order without repeats";
  EXPECT_EQ(whole.header["__metadata__"]["temperature"], "0.5");
  // Without a header, all other columns are left out or none; `title` has the texts in the second.
  const Vectors alone = Exported(RequestOf("i,p|q\nj,q\nk,\n"));
  EXPECT_EQ(alone.floats, whole.floats);
  EXPECT_EQ(alone.texts, whole.texts);
  ExportRequest titled = RequestOf("k,,The K\ni,p|q,The I\nj,q,The J\n");
  titled.item_text = "title";
  const Vectors other_order = Exported(titled);
  EXPECT_EQ(other_order.texts, "The K\nThe I\nThe J\n");
  ASSERT_EQ(other_order.floats.size(), 3 * kDim);
  EXPECT_TRUE(std::equal(whole.floats.begin(), whole.floats.begin() + 2 * kDim,
                         other_order.floats.begin() + kDim));
  EXPECT_EQ(files_->Exists("vectors/items.faiss"), HasFaiss());
  EXPECT_THAT(told_, HasSubstr("3 items, vectors of 6 floats"));
}

TEST_F(VectorsTest, HeadersNameWhatIsThere) {
  WriteText(*files_, "t", std::string("y,user,item,age,tags,title\n") + kRows);
  Train("headed", std::string(R"("train": ["t"], "header": true, )") + kColumns, kModel);
  ExportRequest request = RequestOf("tags,price,item\np|q,7,i\nq,8,j\n");
  request.common.checkpoint = "headed";
  const Vectors vectors = Exported(request);
  EXPECT_EQ(vectors.texts, "i\nj\n");
  request = RequestOf(std::string("y,user,item,age,tags,title\n") + kRows);
  request.common.checkpoint = "headed";
  EXPECT_TRUE(
      std::equal(vectors.floats.begin(), vectors.floats.end(), Exported(request).floats.begin()));
  request = RequestOf("price,item\n7,i\n");
  request.common.checkpoint = "headed";
  EXPECT_THAT(Refused(request), HasSubstr("'tags'"));
  request = RequestOf("tags,item\np,i\n");
  request.common.checkpoint = "headed";
  request.item_text = "title";
  EXPECT_THAT(Refused(request), HasSubstr("items:2: there is no cell of the column 'title'"));
}

TEST_F(VectorsTest, ARepeatedTextCountsOnce) {
  testing::internal::CaptureStderr();
  const Vectors vectors = Exported(RequestOf("i,p\ni,p\ni,q\nj,q\n"));
  EXPECT_EQ(vectors.texts, "i\nj\n");
  EXPECT_EQ(vectors.floats.size(), 2 * kDim);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("1 rows have the text of"));
}

// A new item has the vector of its tags alone, because its own row reads as zeros.
TEST_F(VectorsTest, AnItemWithoutARowHasTheVectorOfItsOtherFeatures) {
  testing::internal::CaptureStderr();
  const Vectors vectors = Exported(RequestOf("new,p\nnewer,p\nnewest,q\n"));
  ASSERT_EQ(vectors.floats.size(), 3 * kDim);
  for (size_t d = 0; d < kDim; ++d) EXPECT_EQ(vectors.floats[d], vectors.floats[kDim + d]);
  EXPECT_FALSE(std::equal(vectors.floats.begin(), vectors.floats.begin() + kDim,
                          vectors.floats.begin() + 2 * kDim));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("3 of 5 distinct keys (60 %), 50 % of all, have no row in the checkpoint "
                        "and read as zeros"));
}

TEST_F(VectorsTest, MistakesAreNamed) {
  ExportRequest request = RequestOf("i,p\n");
  request.items = "";
  EXPECT_THAT(Refused(request), HasSubstr("--items is missing"));
  request.items = "nowhere";
  EXPECT_THAT(Refused(request), HasSubstr("--items: there is no file"));
  request = RequestOf("i,p\n");
  request.item_text = "titel";
  EXPECT_THAT(Refused(request), HasSubstr("--item_text=titel"));
  request.item_text = "buyer";
  EXPECT_THAT(Refused(request), HasSubstr("--item_text=buyer"));
  request = RequestOf("i,p\n");
  request.index = "hnsw";
  EXPECT_THAT(Refused(request), HasSubstr("--index=hnsw: expected exact or hnsw32"));
  EXPECT_THAT(Refused(RequestOf("i,p\nj,p,extra\n")), HasSubstr("items:2"));
  EXPECT_THAT(Refused(RequestOf("\n")), HasSubstr("no row"));
  WriteText(*files_, "t", kRows);
  Train("other", std::string(R"("train": ["t"], )") + kColumns, R"("type": "logistic")");
  request = RequestOf("i,p\n");
  request.common.checkpoint = "other";
  EXPECT_THAT(Refused(request), HasSubstr("model.type is logistic: expected two_tower"));
}

}  // namespace
}  // namespace hdps
