// Tests rows and gradients that travel in 16 bits: rounded for the wire, summed and kept in 32.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/job/spec/train_spec.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "kernels/host/half_floats.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

constexpr DType kNarrow[] = {DType::kFp16, DType::kBf16};

Buffer Narrowed(DType format, const std::vector<float>& values) {
  std::span<std::byte> bytes;
  Buffer buffer = Buffer::Allocate(values.size() * FloatBytes(format), &bytes);
  NarrowFloats(VectorWidth::kPlain, format, values, bytes.data());
  return buffer;
}
std::vector<float> FloatsIn(const Buffer& values) {
  const std::span<const float> floats = values.As<float>();
  return {floats.begin(), floats.end()};
}
std::vector<float> Widened(DType format, const Buffer& values) {
  std::vector<float> wide(values.size() / FloatBytes(format));
  WidenFloats(VectorWidth::kPlain, format, values.data(), wide);
  return wide;
}

class WireFormat : public testing::Test {
 protected:
  // The ack of worker `worker`'s push of `rows`, narrowed as it is sent.
  PushAck Push(uint32_t worker, DType format, const std::vector<TableRows>& rows) {
    PushRequest push = server_->PushOf(0, 0, 1, rows);
    push.gradients = Narrowed(format, FloatsIn(push.gradients));
    push.format = format;
    server_->FromPeer(ServerHarness::WorkerPeer(worker), push, ++id_);
    return server_->Ack(id_);
  }
  PullReply Pull(PullRequest pull, DType format) {
    pull.format = format;
    server_->FromPeer(ServerHarness::WorkerPeer(0), pull, ++id_);
    return server_->TakeReply<PullReply>(id_).value_or(PullReply());
  }

  void Restart() {
    server_ =
        std::make_unique<ServerHarness>(ServerSetting{.job = TestJob(Mode::kSync), .workers = 2});
  }
  void SetUp() override { Restart(); }

  std::unique_ptr<ServerHarness> server_;
  uint64_t id_ = 1000;
};

// Two gradients whose sum does not fit into 16 bits: each is rounded, the sum is not. Workers with
// 32 bits and 16 bits may be mixed.
TEST_F(WireFormat, SumsAreMadeOfRoundedGradientsIn32Bits) {
  for (const DType format : kNarrow) {
    Restart();
    const float one = 1.00123f, other = 3.7e-3f;
    const float rounded = Widened(format, Narrowed(format, {one}))[0];
    ASSERT_NE(rounded, one);
    EXPECT_EQ(Push(0, format, {{0, 1, {7}, {one}}, {1, 2, {5, 6}, {1, 2, 3, 4}}}).code, Code::kOk);
    EXPECT_EQ(Push(1, DType::kFp32, {{0, 1, {7}, {other}}}).code, Code::kOk);
    EXPECT_EQ(server_->Read(0, {7})[0], -((rounded + other) / 2));
    EXPECT_EQ(server_->Read(1, {6, 5}), (std::vector<float>{-1.5, -2, -0.5, -1}));

    const std::vector<TableRows> asked = {{0, 1, {7}, {}}, {1, 2, {5, 6, 99}, {}}};
    const PullReply whole = Pull(server_->PullOf(1, PullMode::kTrain, asked), DType::kFp32);
    for (const PullMode mode : {PullMode::kTrain, PullMode::kPrefetch, PullMode::kRead}) {
      const PullReply reply = Pull(server_->PullOf(1, mode, asked), format);
      ASSERT_EQ(reply.code, Code::kOk);
      EXPECT_EQ(reply.format, format);
      EXPECT_EQ(reply.rows.size(), whole.rows.size() / 2);
      EXPECT_EQ(Widened(format, reply.rows),
                Widened(format, Narrowed(format, FloatsIn(whole.rows))));
    }
    // Rows that changed since are rounded like the prefetched ones.
    PullRequest repair = server_->PullOf(1, PullMode::kRefresh, asked);
    const PullReply changed = Pull(repair, format);
    ASSERT_EQ(changed.code, Code::kOk);
    EXPECT_EQ(changed.tables[0].num_keys, 1u);
    EXPECT_EQ(changed.tables[1].num_keys, 2u);
    EXPECT_EQ(changed.rows.size(), 5 * FloatBytes(format));
    EXPECT_EQ(changed.positions.size(), 2 * sizeof(uint32_t));
  }
}

// More rows than are narrowed at once.
TEST_F(WireFormat, LongAnswersAreRoundedWhole) {
  std::vector<Key> keys;
  std::vector<float> gradients;
  for (Key key = 0; key < 120'000; ++key) {
    keys.push_back(key);
    gradients.push_back(0.001f * static_cast<float>(key));
    gradients.push_back(-0.7f * static_cast<float>(key));
  }
  EXPECT_EQ(Push(0, DType::kBf16, {{1, 2, keys, gradients}}).code, Code::kOk);
  EXPECT_EQ(Push(1, DType::kBf16, {}).code, Code::kOk);
  const PullRequest pull = server_->PullOf(1, PullMode::kTrain, {{1, 2, keys, {}}});
  const PullReply whole = Pull(pull, DType::kFp32);
  for (const DType format : kNarrow) {
    EXPECT_EQ(Widened(format, Pull(pull, format).rows),
              Widened(format, Narrowed(format, FloatsIn(whole.rows))));
  }
}

TEST_F(WireFormat, TooLargeIsTheLargestAndWhatIsNoNumberIsRefused) {
  EXPECT_EQ(Push(0, DType::kFp16, {{0, 1, {7}, {1e6f}}}).code, Code::kOk);
  EXPECT_EQ(Push(1, DType::kFp16, {{0, 1, {7}, {-2.0f}}}).code, Code::kOk);
  EXPECT_EQ(server_->Read(0, {7})[0], -(65504.0f - 2) / 2);
  for (const DType format : kNarrow) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      const uint64_t before = server_->Digest();
      const PushAck ack = Push(0, format, {{0, 1, {1, 2, 3}, {0, 1, 2}}, {1, 2, {4}, {1, bad}}});
      EXPECT_EQ(ack.code, Code::kCorruption);
      EXPECT_NE(ack.message.find("table 'deep': a value of key 4 is"), std::string::npos)
          << ack.message;
      EXPECT_EQ(server_->Digest(), before);
    }
  }
}

// A list determines the number of gradients, in any format.
TEST_F(WireFormat, ListsCountNumbersNotBytes) {
  const std::vector<TableRows> rows = {{0, 1, {7, 8}, {1, 2}}};
  PullRequest pull = server_->PullOf(0, PullMode::kTrain, rows);
  pull.list = 5;
  EXPECT_EQ(Pull(pull, DType::kFp16).rows.size(), 4u);
  PushRequest push = server_->PushOf(0, 0, 1, rows);
  push.list = 5;
  push.tables.clear();
  push.keys = Buffer();
  push.format = DType::kFp16;
  server_->FromPeer(ServerHarness::WorkerPeer(0), push, ++id_);  // Twice as many as keys.
  EXPECT_NE(server_->Ack(id_).message.find("4 gradients for key list 5"), std::string::npos);
  push.gradients = Narrowed(DType::kFp16, {1, 2});
  server_->FromPeer(ServerHarness::WorkerPeer(0), push, ++id_);
  EXPECT_EQ(server_->Ack(id_).code, Code::kOk);
}

}  // namespace
}  // namespace hdps
