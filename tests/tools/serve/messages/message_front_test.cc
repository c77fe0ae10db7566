// Tests answers over messages with a model, a queue and keys of the tests.
#include "tools/serve/messages/message_front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/protocol/message_frames.h"
#include "common/protocol/predict/predict_messages.h"
#include "common/protocol/status_messages.h"
#include "tests/common/net/keys_for_tests.h"
#include "tests/tools/serve/messages/numbering_model.h"
#include "tools/serve/messages/column_sections.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PredictRequest Rows(uint32_t rows) {
  PredictRequest request;
  request.rows = rows;
  request.columns = {{"price", CellForm::kFloats, rows, false}};
  std::span<float> floats;
  request.floats = Buffer::AllocateOf<float>(rows, &floats);
  std::ranges::fill(floats, 0.5F);
  return request;
}

class MessageFrontTest : public testing::Test {
 protected:
  ~MessageFrontTest() override {
    if (front_ != nullptr) front_->Stop();
    queue_.Close();
  }
  void Start(std::vector<WatchedModel> models) {
    TransportOptions options;
    options.self = PeerName(kServingPeer);
    auto front = MessageFront::ListenOver(NewInprocTransport(hub_, options), "inproc://serve",
                                          std::move(models), queue_);
    ASSERT_TRUE(front.ok()) << front.status().message();
    front_ = std::move(*front);
    options.self = NameOf(NamedPeer(7));
    client_ = NewInprocTransport(hub_, options);
    ASSERT_TRUE(client_->Connect(kServingPeer, front_->address()).ok());
  }
  void Start() { Start({{&model_, &watch_}}); }

  void Say(const PredictRequest& request, uint64_t id) {
    Frame frame = EncodeMessage(request);
    frame.header.request_id = id;
    client_->Send(kServingPeer, std::move(frame));
  }
  PredictReply Hear(uint64_t id) {
    PredictReply reply;
    PeerId from;
    Frame frame;
    for (int i = 0; i < 200; ++i) {
      if (!client_->Receive(100, &from, &frame)) continue;
      EXPECT_EQ(frame.header.request_id, id);
      const Status read = DecodeMessage(frame, &reply);
      EXPECT_TRUE(read.ok()) << read.message();
      return reply;
    }
    ADD_FAILURE() << "no reply came";
    return reply;
  }
  PredictReply Ask(const PredictRequest& request) {
    const uint64_t id = ++asked_;
    Say(request, id);
    return Hear(id);
  }

  const std::shared_ptr<InprocHub> hub_ = NewInprocHub();
  NumberingModel model_{"census"}, other_{"other"};
  LastSeen watch_;
  OneThread queue_;
  std::unique_ptr<MessageFront> front_;
  std::unique_ptr<Transport> client_;
  uint64_t asked_ = 0;
};

TEST_F(MessageFrontTest, RowsAreAnswered) {
  Start();
  const PredictReply reply = Ask(Rows(3));
  ASSERT_EQ(reply.code, Code::kOk) << reply.message;
  EXPECT_EQ(reply.step, 640);
  EXPECT_EQ(reply.rows, 3U);
  ASSERT_EQ(reply.outputs.size(), 2U);
  EXPECT_THAT(reply.numbers.As<float>(), ElementsAre(640, 641, 642));
  EXPECT_EQ(reply.outputs[1].name, "top_k");
  EXPECT_TRUE(reply.outputs[1].texts);
  EXPECT_THAT(reply.ends.As<uint32_t>(), ElementsAre(0, 6, 6, 12, 12, 18, 18));
  EXPECT_EQ(watch_.code_, 200);
  EXPECT_EQ(watch_.rows_, 3U);
}

TEST_F(MessageFrontTest, OutputsAreChosenByName) {
  Start();
  PredictRequest request = Rows(2);
  request.outputs = {{"top_k"}, {"logit"}};
  const PredictReply reply = Ask(request);
  ASSERT_EQ(reply.code, Code::kOk) << reply.message;
  EXPECT_THAT(model_.asked_, ElementsAre(ScoreOutput::kTopK, ScoreOutput::kLogit));
  ASSERT_EQ(reply.outputs.size(), 1U);
  EXPECT_TRUE(reply.numbers.empty());
  request.outputs = {{"logits"}};
  const PredictReply refused = Ask(request);
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_THAT(refused.message, HasSubstr("there is no output 'logits'; there are probability, "
                                         "logit, top_k; did you mean \"logit\"?"));
  EXPECT_EQ(watch_.code_, 400);
}

TEST_F(MessageFrontTest, WithoutColumnsTheModelIsTold) {
  Start();
  const PredictReply reply = Ask(PredictRequest());
  EXPECT_EQ(reply.code, Code::kOk);
  EXPECT_EQ(reply.model, "census");
  EXPECT_TRUE(reply.ready);
  EXPECT_EQ(reply.step, 640);
  ASSERT_EQ(reply.takes.size(), 1U);
  EXPECT_EQ(reply.takes[0].datatype, "FP32");
  EXPECT_EQ(reply.gives.size(), 3U);
}

PredictRequest RowsByKey(const std::vector<int64_t>& keys) {
  PredictRequest request;
  request.table = "deep";
  request.rows = static_cast<uint32_t>(keys.size());
  request.columns = {{"", CellForm::kIntegers, request.rows, false}};
  request.integers = Buffer::CopyOf<int64_t>(keys);
  return request;
}
PredictRequest RowsByValue(const std::string& feature) {
  PredictRequest request;
  request.table = "deep";
  request.rows = 2;
  request.columns = {{feature, CellForm::kTexts, 2, false}};
  request.ends = Buffer::CopyOf<uint32_t>(std::vector<uint32_t>{0, 1, 3});
  request.texts = Buffer::CopyOf(std::as_bytes(std::span("abc", 3)));
  return request;
}

TEST_F(MessageFrontTest, RowsOfATableAreTold) {
  Start();
  const PredictReply reply = Ask(RowsByKey({3, 12, -1}));
  ASSERT_EQ(reply.code, Code::kOk) << reply.message;
  EXPECT_EQ(reply.step, 640);
  EXPECT_EQ(reply.rows, 3U);
  ASSERT_EQ(reply.outputs.size(), 2U);
  EXPECT_EQ(reply.outputs[0].name, "rows");
  EXPECT_EQ(reply.outputs[0].width, 2U);
  const auto last = static_cast<float>(UINT64_MAX);
  EXPECT_THAT(reply.numbers.As<float>(), ElementsAre(3, 6, 12, 24, last, 2 * last, 1, 0, 0));
  EXPECT_EQ(watch_.code_, 200);
  EXPECT_EQ(watch_.protocol_, ServingProtocol::kLookup);
  EXPECT_THAT(Ask(RowsByValue("city")).numbers.As<float>(), ElementsAre(0, 0.5, 1, 0.5, 1, 0));
}

TEST_F(MessageFrontTest, MistakenQuestionsForRowsAreRefused) {
  Start();
  PredictRequest other_table = RowsByKey({1}), other_step = RowsByKey({1});
  other_table.table = "deeper";
  other_step.step = 7;
  PredictRequest lists = RowsByValue("city");
  lists.columns[0].lists = true;
  lists.ends = Buffer::CopyOf<uint32_t>(std::vector<uint32_t>{0, 1, 1, 0, 3});
  PredictRequest none = RowsByKey({1}), two = RowsByKey({1, 2});
  none.columns.clear();
  none.integers = Buffer();
  two.columns.push_back(two.columns[0]);
  two.integers = Buffer::CopyOf<int64_t>(std::vector<int64_t>{1, 2, 1, 2});
  const std::string expected = "expected one, of keys without a name, or of texts";
  const std::vector<std::tuple<PredictRequest, Code, std::string>> mistakes = {
      {other_table, Code::kInvalidArgument, "expected deep"},
      {other_step, Code::kNotFound, "step 640 answers"},
      {RowsByKey({}), Code::kInvalidArgument, "has no keys: expected at least one"},
      {RowsByKey(std::vector<int64_t>(8193)), Code::kResourceExhausted, "at most 8192"},
      {RowsByValue(""), Code::kInvalidArgument, expected},
      {lists, Code::kInvalidArgument, expected},
      {none, Code::kInvalidArgument, "has 0 columns: " + expected},
      {two, Code::kInvalidArgument, "has 2 columns: " + expected}};
  for (const auto& [request, code, part] : mistakes) {
    const PredictReply reply = Ask(request);
    EXPECT_EQ(reply.code, code) << part;
    EXPECT_THAT(reply.message, HasSubstr(part));
    EXPECT_NE(watch_.code_, 200);
  }
  model_.ready_ = false;
  EXPECT_EQ(Ask(RowsByKey({1})).code, Code::kUnavailable);
}

TEST_F(MessageFrontTest, TheIdOfARequestComesToTheModel) {
  Start();
  PredictRequest request = Rows(1);
  request.id = "visit 7";
  EXPECT_EQ(Ask(request).code, Code::kOk);
  EXPECT_EQ(model_.id_, "visit 7");
}

TEST_F(MessageFrontTest, ModelsAndVersionsAreNamed) {
  Start({{&model_, nullptr}, {&other_, nullptr}});
  PredictRequest request = Rows(1);
  EXPECT_THAT(Ask(request).message, HasSubstr("there are the models census, other"));
  request.model = "othr";
  EXPECT_EQ(Ask(request).code, Code::kNotFound);
  EXPECT_THAT(Ask(request).message, HasSubstr("did you mean \"other\"?"));
  request.model = "other";
  request.step = 7;
  EXPECT_EQ(Ask(request).code, Code::kNotFound);
  request.step = 640;
  EXPECT_EQ(Ask(request).code, Code::kOk);
  other_.ready_ = false;
  EXPECT_EQ(Ask(request).code, Code::kUnavailable);
}

TEST_F(MessageFrontTest, WhatIsTooMuchIsRefused) {
  Start();
  EXPECT_EQ(Ask(Rows(8193)).code, Code::kResourceExhausted);
  PredictRequest large;
  std::span<std::byte> bytes;
  large.texts = Buffer::Allocate(kRequestBytesMax, &bytes);
  EXPECT_EQ(Ask(large).code, Code::kResourceExhausted);
  queue_.full_ = true;
  EXPECT_EQ(Ask(Rows(1)).code, Code::kUnavailable);
  queue_.full_ = false;
  EXPECT_EQ(Ask(Rows(1)).code, Code::kOk);
}

TEST_F(MessageFrontTest, RequestsWithoutRowsAreRefused) {
  Start();
  PredictRequest none = Rows(0), one_for_all = Rows(1);
  one_for_all.rows = 0;
  for (const PredictRequest& request : {none, one_for_all}) {
    const PredictReply reply = Ask(request);
    EXPECT_EQ(reply.code, Code::kInvalidArgument);
    EXPECT_EQ(reply.message, "the request has no rows: expected at least one");
    EXPECT_EQ(watch_.code_, 400);
  }
}

TEST_F(MessageFrontTest, AnIdHasABound) {
  Start();
  PredictRequest request = Rows(1);
  request.id = std::string(kRequestIdBytesMax, 'x');
  EXPECT_EQ(Ask(request).code, Code::kOk);
  request.id += 'x';
  const PredictReply reply = Ask(request);
  EXPECT_EQ(reply.code, Code::kInvalidArgument);
  EXPECT_EQ(reply.message, "the id has 513 bytes: expected at most 512");
}

TEST_F(MessageFrontTest, WhatIsNoRequestIsRefusedOrPassedOver) {
  Start();
  Frame broken = EncodeMessage(Rows(3));
  broken.sections[3] = Buffer();
  broken.header.request_id = ++asked_;
  client_->Send(kServingPeer, broken);
  EXPECT_EQ(Hear(asked_).code, Code::kCorruption);
  client_->Send(kServingPeer, EncodeMessage(StatusRequest()));
  EXPECT_EQ(Ask(Rows(1)).code, Code::kOk);
}

TEST_F(MessageFrontTest, StopAnswersWhatIsAtHand) {
  Start();
  for (uint64_t id = 1; id <= 20; ++id) Say(Rows(5), id);
  EXPECT_EQ(Hear(1).code, Code::kOk);
  front_->Stop();
  for (uint64_t id = 2; id <= 20; ++id) {
    const Code code = Hear(id).code;
    EXPECT_TRUE(code == Code::kOk || code == Code::kUnavailable) << CodeName(code);
  }
}

// ---- Keys.

PredictReply AskOver(Transport& client, int turns) {
  PredictReply reply;
  reply.code = Code::kTimeout;
  PeerId from;
  Frame frame;
  for (int turn = 0; turn < turns; ++turn) {
    client.Send(kServingPeer, EncodeMessage(Rows(2)));
    if (!client.Receive(50, &from, &frame)) continue;
    EXPECT_TRUE(DecodeMessage(frame, &reply).ok());
    break;
  }
  return reply;
}

TEST(MessageFrontKeys, ReadersMayAskAndOthersMayNot) {
  const auto files = FolderOfKeys(), strangers = FolderOfKeys();
  NumberingModel model("census");
  OneThread queue;
  MessageFrontOptions options;
  options.listen = "tcp://127.0.0.1:0";
  options.connections.keys = *KeyFolder::Open(files, "k", {KeyRole::kServing});
  auto front = MessageFront::Listen(options, {{&model, nullptr}}, queue);
  ASSERT_TRUE(front.ok()) << front.status().message();
  uint64_t number = 10;
  for (const auto& [role, word] : WordsOf(KeyRole{})) {
    // A peer keeps its role.
    const auto client = NewZmqTransport(OptionsFor(NamedPeer(number++), files, role));
    ASSERT_TRUE(client->Connect(kServingPeer, (*front)->address()).ok());
    const bool may = role == KeyRole::kReader || role == KeyRole::kAdmin;
    const PredictReply reply = AskOver(*client, may ? 200 : 6);
    EXPECT_EQ(reply.code, may ? Code::kOk : Code::kTimeout) << word;
  }
  // A stranger knows the public key of the listener, but its own is in no list here.
  std::vector<AllowedKey> known = *ReadAllowedKeys(*strangers, "k");
  for (AllowedKey& key : known) {
    if (key.role != KeyRole::kServing) continue;
    key.public_key = options.connections.keys->ring().own.public_key;
  }
  ASSERT_TRUE(WriteFileAtomically(*strangers, AllowedKeysPath("k"), PrintAllowedKeys(known)).ok());
  const auto stranger = NewZmqTransport(OptionsFor(NamedPeer(number), strangers, KeyRole::kReader));
  ASSERT_TRUE(stranger->Connect(kServingPeer, (*front)->address()).ok());
  EXPECT_EQ(AskOver(*stranger, 6).code, Code::kTimeout);
  (*front)->Stop();
  queue.Close();
}

TEST(MessageFrontKeys, NobodyListensBeyondThisMachineWithoutThem) {
  NumberingModel model("census");
  OneThread queue;
  MessageFrontOptions options;
  options.listen = "tcp://0.0.0.0:0";
  const Status refused = MessageFront::Listen(options, {{&model, nullptr}}, queue).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("--listen: "));
  queue.Close();
}

}  // namespace
}  // namespace hdps
