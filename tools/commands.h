// The subcommands of hdps. Each takes argv with its own name as argv[0], parses its own flags, and
// gives the exit status.
#pragma once

namespace hdps {

int GenerateMain(int argc, char** argv);

}  // namespace hdps
