// Prints frames of this protocol for tests that send them to the wrong place. `print_frames SENDER
// [HOST]` prints a line for each: its name and its parts in hexadecimal. HOST is the host of a
// member that joins.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/net/frame.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/status_messages.h"

namespace hdps {
namespace {

void PrintPart(std::span<const std::byte> part) {
  std::putchar(' ');
  for (const std::byte byte : part) std::printf("%02x", std::to_integer<unsigned>(byte));
}

void Print(const char* name, Frame frame, uint64_t sender) {
  frame.header.sender = sender;
  frame.header.view = 1;
  frame.header.request_id = 1;
  ChecksumFrame(frame);
  std::fputs(name, stdout);
  PrintPart(std::as_bytes(std::span(&frame.header, 1)));
  PrintPart(frame.envelope.bytes());
  for (const Buffer& section : frame.sections) PrintPart(section.bytes());
  std::putchar('\n');
}

// Prints messages about one key of the first table of a wide and deep job, which has a float per
// row, for a server that holds the only shard.
void PrintAll(uint64_t sender, const std::string& host) {
  const Key keys[] = {5};
  const float gradients[] = {1e6f};
  const TableKeys table{.table = TableId{0}, .num_keys = 1, .row_floats = 1, .shard_counts = {1}};
  PullRequest pull;
  pull.mode = PullMode::kRead;
  pull.tables = {table};
  pull.keys = Buffer::CopyOf<Key>(keys);
  PushRequest push;
  push.sequence = Sequence{1};
  push.num_examples = 1;
  push.tables = {table};
  push.keys = Buffer::CopyOf<Key>(keys);
  push.gradients = Buffer::CopyOf<float>(gradients);
  JoinRequest join;
  join.host = host;
  join.address = "tcp://127.0.0.1:9";
  Print("join", EncodeMessage(join), sender);
  Print("status", EncodeMessage(StatusRequest()), sender);
  Print("probe", EncodeMessage(Probe()), sender);
  Print("pull", EncodeMessage(pull), sender);
  Print("push", EncodeMessage(push), sender);
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: print_frames SENDER [HOST]\n", stderr);
    return 2;
  }
  hdps::PrintAll(std::strtoull(argv[1], nullptr, 10), argc == 3 ? argv[2] : "");
  return 0;
}
