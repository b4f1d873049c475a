#include "diagnose/level.h"

#include <gtest/gtest.h>

namespace nlaunch::diagnose {
namespace {

TEST(LevelOf, IsReadInTheFormsOfTheLoggersOfTheField) {
  struct Case {
    const char* before;
    Level level;
  };
  for (const auto& [before, level] : {
           Case{"(APIServer pid=7) WARNING 11-23 12:59:40 [system_utils.py:255] ", Level::warning},
           Case{"(EngineCore pid=7) ERROR 11-23 12:04:22 [core.py:1510] ", Level::error},
           Case{"INFO 11-23 13:15:24 [inplace.py:113] ", Level::info},
           Case{"INFO:     127.0.0.1:52324 - ", Level::info},
           Case{"WARNING:root:", Level::warning},
           Case{"2026-11-23 12:00:01,123 - ERROR - ", Level::error},
           Case{"W1123 12:54:55.866961984 reducer.cpp:1529] ", Level::warning},
           Case{"E1123 12:54:55.866961 7 pair.cc:456] ", Level::error},
           Case{"/venv/lib/python3.11/site-packages/torch/x.py:7: UserWarning: ", Level::warning},
           Case{"[2026-11-23 10:00:01,123] [INFO] ", Level::info},
           Case{"[2026-11-23 10:00:01] [FATAL] ", Level::error},
           Case{"2026-11-23 10:00:01 | DEBUG    | ", Level::info},
           Case{"I1123 12:54:55.866961 7 pair.cc:456] ", Level::info},
           Case{"[W1123 12:54:55 reducer.cpp:1529] ", Level::warning},
           Case{"F1123 12:54:55.866961 7 pair.cc:456] ", Level::error},
           Case{"[2026-11-23 10:00:01,123 I 4711 4720] ", Level::info},
           Case{"[2026-11-23 10:00:01,123 W 4711 4720] ", Level::warning},
           Case{"[2026-11-23 10:00:01,123 E 4711 4720] ", Level::error},
           Case{"[2026-11-23 10:00:01,123 C 4711 4720] ", Level::error},
           Case{"a.py:7: Warning: ", Level::warning},
           Case{"INFORMATION ", Level::unsaid},
           Case{"E1123 is the name ", Level::unsaid},
           Case{"node1:7:8 [0] NCCL INFO ", Level::unsaid},
           Case{"node1:7:8 [0] misc/socket.cc:58 NCCL WARN ", Level::unsaid},
           Case{"RuntimeError: ", Level::unsaid},
           Case{"", Level::unsaid},
       })
    EXPECT_EQ(level_of(before), level) << before;
}

}  // namespace
}  // namespace nlaunch::diagnose
