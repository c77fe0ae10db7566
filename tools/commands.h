// The subcommands of hdps. Each takes argv with its own name as argv[0], parses its own flags, and
// gives the exit status.
#pragma once

namespace hdps {

int TrainMain(int argc, char** argv);
int EvaluateMain(int argc, char** argv);
int PredictMain(int argc, char** argv);
int InspectMain(int argc, char** argv);
int GenerateMain(int argc, char** argv);
int PlanMain(int argc, char** argv);
int StatusMain(int argc, char** argv);

}  // namespace hdps
