// The layouts of the messages of board_messages.h, in the order of messages.fbs.
#include "common/protocol/board_messages.h"
#include "common/protocol/message_codec.h"

namespace hdps {

template <>
struct Layout<KvPut> {
  using Table = wire::KvPut;
  static void Describe(auto& fields, auto& message) {
    fields.Name(message.key);
    fields.Name(message.value);
  }
};
HDPS_MESSAGE(KvPut);

template <>
struct Layout<KvGet> {
  using Table = wire::KvGet;
  static void Describe(auto& fields, auto& message) { fields.Name(message.key); }
};
HDPS_MESSAGE(KvGet);

template <>
struct Layout<KvValue> {
  using Table = wire::KvValue;
  static void Describe(auto& fields, auto& message) {
    fields.Name(message.key);
    fields.Number(message.found);
    fields.Name(message.value);
  }
};
HDPS_MESSAGE(KvValue);

}  // namespace hdps
