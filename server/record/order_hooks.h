// Says whether a server records the order of its requests, or follows a record.
#pragma once

namespace hdps {

class OrderGate;
class OrderRecorder;

// Both must outlive the server.
struct OrderHooks {
  OrderRecorder* recorder = nullptr;  // Null: nothing is recorded.
  // Holds requests to the group of which the server is primary; null: they are served as they come.
  OrderGate* gate = nullptr;
};

}  // namespace hdps
