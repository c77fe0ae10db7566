// Includes every message of the cluster and the codec, for code that uses most of them.
#pragma once

#include "common/protocol/activity.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/status_messages.h"
#include "common/protocol/view.h"
