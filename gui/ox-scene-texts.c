/* What the invented library of the scenes holds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-scene-texts.h"

static const OxSceneChat chats[] = {
  { "River gauge spike",
    0,
    FALSE,
    { "Gauge 4 shows 0.47 m, then 1.09 m for two hours, then 0.46 m again. Which reading is wrong, and can you write "
      "me "
      "a function that finds such spikes?",
      "The reading on **21 November at 03:00** is wrong: it jumps to **1.09 m** and is back two hours later. A branch "
      "across the sensor looks just like that.\n\n"
      "- The rise on 15 and 16 November takes a day and a half: that is rain, keep it.\n"
      "- The spike rises 0.6 m in one hour, faster than this river can.\n\n"
      "This compares each reading with the median of its neighbours:\n\n"
      "```python\n"
      "def flag_spikes(levels, window=9, limit=0.25):\n"
      "    half = window // 2\n"
      "    return [i for i, v in enumerate(levels)\n"
      "            if abs(v - median(levels[max(0, i - half):i + half + 1])) > limit]\n"
      "```",
      NULL } },
  { "Sourdough timing for 24 °C",
    0,
    FALSE,
    { "My kitchen has 24 °C. How long should my sourdough rise?",
      "About **five hours** for the bulk rise, then twelve in the fridge. Look at the dough, not at the clock: it "
      "should "
      "have grown by half.",
      NULL } },
  { "Rename 400 scans by date", 0, FALSE, { "How do I rename 400 scans by date?", "With `exiftool`.", NULL } },
  { "Letter to the water board",
    1,
    FALSE,
    { "We meet with the water board on Thursday. Can you help me prepare?",
      "Gladly. To prepare well I would look at three things:\n\n"
      "- what was **agreed** last time, and what is still open\n"
      "- what the board will **ask**: the budget and the dates\n"
      "- what you want to **leave with**, in one sentence\n\n"
      "If you paste the minutes here I will start with the first point.",
      NULL } },
  { "Explain Kalman filters simply", 1, FALSE, { "Explain Kalman filters simply.", "It is a weighted guess.", NULL } },
  { "Hiking kit for two rainy days", 3, FALSE, { "What do I pack for two rainy days?", "Two pairs of socks.", NULL } },
  { "Bash: find large old files", 4, FALSE, { "Find large old files in Bash.", "Use `find`.", NULL } },
  { "Übersetzung Mietvertrag",
    4,
    FALSE,
    { "Please translate the first paragraph of this rental contract into English.",
      "The contract starts on 1 March and runs for two years. The rent is 780 € without heating, and the deposit is "
      "two",
      NULL } },
  { "Quiz on Roman roads", 5, FALSE, { "Make a quiz on Roman roads.", "1. Which road led to Brindisi?", NULL } },
  { "Chord ideas in D minor", 6, FALSE, { "Chord ideas in D minor, please.", "Dm, B♭, F, C.", NULL } },
  { "Compare three heat pumps", 20, FALSE, { "Compare three heat pumps.", "The second is the quietest.", NULL } },
  { "מתכון לחלה", 24, FALSE, { "מתכון לחלה בבקשה", "בשמחה. צריך קמח, מים, שמרים, סוכר ושמן.", NULL } },
  { "Names for a sailing boat", 26, FALSE, { "Names for a small sailing boat?", "*Windfall*.", NULL } },
};

const char *const ox_scene_streaming_question = "On which days can we service the pump in the first half of December?";

const char *const ox_scene_streaming_answer =
  "The lock is open on Mondays and Thursdays. With the tide, three days remain:\n\n"
  "| Date | Tide at 10:00 | Suitable |\n"
  "|---|---|---|\n"
  "| Mon 7 December | 0.9 m below the box | yes |\n"
  "| Thu 10 December | 0.2 m above the box | no |\n"
  "| Mon 14 December | 1.3 m below the box | best |\n\n"
  "I would take **14 December**: it leaves the longest dry";

const char *const ox_scene_long_question =
  "Here are the minutes from Tuesday. Please list every promise that was made, with who made it and until when.";

const char *const ox_scene_thinking =
  "The user wants days on which the pump can be serviced. The lock is open on Mondays and Thursdays. The 3rd is too "
  "soon for the spare part, so I leave it out. The tide table matters as well, because the box is under water at "
  "spring tide.";

/**
 * ox_scene_get_chats:
 * @n: (out): how many there are
 *
 * Returns: the conversations, newest first
 */
const OxSceneChat *
ox_scene_get_chats (guint *n)
{
  *n = G_N_ELEMENTS (chats);
  return chats;
}
