/* Oxinfer's inference engine: language models on the user's own computer.
 *
 * A program makes a model (ox_model_load), a session on it (ox_session_new), fills a chat (ox_chat_append) and calls
 * ox_session_generate(), which blocks and hands out text through a callback. See engine/examples/hello.c.
 *
 * Rules that hold everywhere here:
 *  - Calls block. A call that can take over 50 ms takes a GCancellable, which is obeyed within 100 ms, and most a progress callback.
 *  - Errors are GErrors of OX_ERROR, or G_IO_ERROR_CANCELLED; a message names the file, the field and what was expected.
 *  - Nothing prints, exits or asserts on input. Models and tokenizers are immutable and may be shared by threads; a session
 *    belongs to one thread at a time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* ---- Errors --------------------------------------------------------------------------------------------------- */

#define OX_ERROR (ox_error_quark ())
GQuark ox_error_quark (void);

/**
 * OxError:
 * @OX_ERROR_NOT_FOUND: no such file or folder, or a file that a model needs is missing
 * @OX_ERROR_IO: the file system failed
 * @OX_ERROR_DAMAGED: a file breaks the rules of its format
 * @OX_ERROR_UNSUPPORTED: well-formed, but of a kind that this version cannot run
 * @OX_ERROR_NO_MEMORY: it does not fit in memory
 * @OX_ERROR_CONTEXT_FULL: the conversation is longer than the model's context
 * @OX_ERROR_INVALID: the caller asked for something that makes no sense
 * @OX_ERROR_NUMERIC: the network produced values that are not finite
 * @OX_ERROR_DRAFTER: a model that makes another one answer sooner and cannot answer by itself
 */
typedef enum {
  OX_ERROR_NOT_FOUND,
  OX_ERROR_IO,
  OX_ERROR_DAMAGED,
  OX_ERROR_UNSUPPORTED,
  OX_ERROR_NO_MEMORY,
  OX_ERROR_CONTEXT_FULL,
  OX_ERROR_INVALID,
  OX_ERROR_NUMERIC,
  OX_ERROR_DRAFTER,
} OxError;

/* @fraction is in 0…1 and never falls. Called on the thread of the blocking call, at most about 30 times a second. */
typedef void (*OxProgressFunc) (double fraction, gpointer user_data);

/* ---- This computer -------------------------------------------------------------------------------------------- */

/**
 * OxPlatform:
 * @cpu: the processor's name
 * @cpu_level: the instruction set that kernels use: "avx512vnni", "avx2", "neon", "c"
 * @cores: cores that this process may use now (affinity, cgroup quota)
 * @memory_total: bytes of memory, or the cgroup's limit when that is lower
 * @memory_available: bytes that can be taken now without swapping
 */
typedef struct {
  char *cpu;
  const char *cpu_level;
  guint cores;
  guint64 memory_total;
  guint64 memory_available;
} OxPlatform;

OxPlatform *ox_platform_query (void);
void ox_platform_free (OxPlatform *platform);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxPlatform, ox_platform_free)

/* The two memory figures alone. */
void ox_platform_get_memory (guint64 *total, guint64 *available);

/* Names of the GPUs found, for information; NULL-terminated, free with g_strfreev(). The first call asks the drivers, which may take
 * some hundred milliseconds: not for a main thread. */
char **ox_platform_find_gpus (void);

/* The one monotonic clock, in microseconds. Tests replace its source; NULL puts the system's back. */
gint64 ox_clock_now (void);
typedef gint64 (*OxClockFunc) (gpointer user_data);
void ox_clock_set_source (OxClockFunc func, gpointer user_data);

/* ---- Models --------------------------------------------------------------------------------------------------- */

/**
 * OxModelPrecision:
 * @OX_MODEL_PRECISION_AUTO: fast
 * @OX_MODEL_PRECISION_EXACT: float32 activations; slow, for comparison with reference implementations
 * @OX_MODEL_PRECISION_FAST: activations quantised where the weights are
 */
typedef enum {
  OX_MODEL_PRECISION_AUTO,
  OX_MODEL_PRECISION_EXACT,
  OX_MODEL_PRECISION_FAST,
} OxModelPrecision;

/* What a model can take or give. */
typedef enum {
  OX_CAPABILITY_CHAT = 1 << 0, /* has a chat format: made for conversation */
  OX_CAPABILITY_SEE = 1 << 1,
  OX_CAPABILITY_HEAR = 1 << 2,
  OX_CAPABILITY_THINK = 1 << 3,
  OX_CAPABILITY_TOOLS = 1 << 4,
} OxCapabilities;

/* OX_FIT_WELL: at least 2 GB stay free; OX_FIT_TIGHT: less; OX_FIT_NOT: more than is available now. */
typedef enum {
  OX_FIT_WELL,
  OX_FIT_TIGHT,
  OX_FIT_NOT,
} OxFit;

/**
 * OxModelWeights: how the weights of a float checkpoint (BF16, F16, F32) are held in memory. Files that are quantised already stay as
 * they are.
 * @OX_MODEL_WEIGHTS_AUTO: as stored with exact precision; else Q8 when that fits in the memory that is free now, else Q4
 * @OX_MODEL_WEIGHTS_STORED: as the file has them
 * @OX_MODEL_WEIGHTS_Q8: 8 bits, blocks of 32 with one scale
 * @OX_MODEL_WEIGHTS_Q4: 4 bits, blocks of 32 with one scale; the output head in Q8
 */
typedef enum {
  OX_MODEL_WEIGHTS_AUTO,
  OX_MODEL_WEIGHTS_STORED,
  OX_MODEL_WEIGHTS_Q8,
  OX_MODEL_WEIGHTS_Q4,
} OxModelWeights;

/**
 * OxModelKv: the format of keys and values.
 * @OX_MODEL_KV_AUTO: F32 with exact precision, else BF16 where this processor multiplies that fast, else F16
 */
typedef enum {
  OX_MODEL_KV_AUTO,
  OX_MODEL_KV_F32,
  OX_MODEL_KV_F16,
  OX_MODEL_KV_BF16,
  OX_MODEL_KV_Q8,
} OxModelKv;

/**
 * OxModelOptions:
 * @precision: see OxModelPrecision
 * @weights: see OxModelWeights
 * @kv: see OxModelKv
 * @threads: worker threads; 0: every core that this process may use
 * @context_length: tokens a conversation may have; 0: the model's own, at most 8192
 * @ignore_memory: try to load even when it does not fit in the memory that is free now
 * @no_packed_cache: do not keep packed weights on disk and do not use those kept
 * @drafter: a smaller model made for this one, which guesses tokens ahead (Gemma 4 assistant); NULL: none
 */
typedef struct {
  OxModelPrecision precision;
  OxModelWeights weights;
  OxModelKv kv;
  guint threads;
  guint context_length;
  gboolean ignore_memory;
  gboolean no_packed_cache;
  const char *drafter;
} OxModelOptions;

/**
 * OxModelPlan: what loading would mean, told without loading
 * @path: file or folder
 * @name: for people: "SmolLM2 135M Instruct"
 * @architecture: "llama", "gemma3"
 * @format: weight format for people: "Q4_1", "Q4_K_M", "BF16"
 * @chat_format: "gemma4-small", "qwen3.8", "chatml" …; NULL: a base model, which continues text
 * @parameters: number of weights
 * @file_bytes: size on disk
 * @weight_bytes: resident once loaded
 * @kv_bytes_per_token: growth of the conversation state
 * @state_bytes: conversation state at @context_length
 * @context_length: tokens, after the options
 * @context_length_max: tokens the model was made for
 * @memory_needed: weights, state and scratch at @context_length
 * @memory_available: when asked
 * @fit: the verdict
 * @note: a sentence for the user, or NULL
 */
typedef struct {
  char *path;
  char *name;
  char *architecture;
  char *format;
  const char *chat_format;
  OxCapabilities capabilities;
  guint64 parameters;
  guint64 file_bytes;
  guint64 weight_bytes;
  guint64 kv_bytes_per_token;
  guint64 state_bytes;
  guint context_length;
  guint context_length_max;
  guint64 memory_needed;
  guint64 memory_available;
  OxFit fit;
  char *note;
} OxModelPlan;

/* Reads headers only (some milliseconds to some hundred). @path: a .gguf file, a .safetensors file or a Hugging Face folder.
 * @options may be NULL. */
OxModelPlan *ox_model_plan (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error);
void ox_model_plan_free (OxModelPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxModelPlan, ox_model_plan_free)

typedef struct _OxModel OxModel;

/* OX_ERROR_NO_MEMORY when it does not fit in the memory that is free now (unless @options says to try anyway), or when memory really
 * runs out. */
OxModel *ox_model_load (const char *path,
                        const OxModelOptions *options,
                        OxProgressFunc progress,
                        gpointer user_data,
                        GCancellable *cancellable,
                        GError **error);
OxModel *ox_model_ref (OxModel *model);
void ox_model_unref (OxModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxModel, ox_model_unref)
/* The plan as it came out: sizes are the real ones. Owned by the model. */
const OxModelPlan *ox_model_get_plan (OxModel *model);

/* At most half of the model's threads work from now on, at once, also in an answer that is being written; FALSE: all of them again. For
 * computers that save power. Any thread. Answers stay the same. */
void ox_model_set_power_saving (OxModel *model, gboolean power_saving);

/* ---- Where the time goes -------------------------------------------------------------------------------------- */

/**
 * OxProfileCategory:
 * @OX_PROFILE_MATMUL: products with weights, rounding their input included
 * @OX_PROFILE_ATTENTION: attention, writing keys and values included
 * @OX_PROFILE_NORM: norms
 * @OX_PROFILE_ELEMENTWISE: gates, sums, rotations, copies
 * @OX_PROFILE_RECURRENT: convolution and delta rule of linear attention
 * @OX_PROFILE_IO: embedding rows from the file, states saved and restored
 * @OX_PROFILE_SAMPLING: drawing tokens, grammars
 * @OX_PROFILE_TOKENIZER: text to tokens and back, chat formats
 * @OX_PROFILE_IMAGE: pictures made ready
 * @OX_PROFILE_LOAD: loading the model: reading and packing weights
 * @OX_PROFILE_OTHER: the rest of an answer: callbacks, tools, waiting
 */
typedef enum {
  OX_PROFILE_MATMUL,
  OX_PROFILE_ATTENTION,
  OX_PROFILE_NORM,
  OX_PROFILE_ELEMENTWISE,
  OX_PROFILE_RECURRENT,
  OX_PROFILE_IO,
  OX_PROFILE_SAMPLING,
  OX_PROFILE_TOKENIZER,
  OX_PROFILE_IMAGE,
  OX_PROFILE_LOAD,
  OX_PROFILE_OTHER,
} OxProfileCategory;

#define OX_PROFILE_N_CATEGORIES 11

/**
 * OxProfile: by OxProfileCategory
 * @nanoseconds: wall time on the threads that called; those of one answer sum to its time
 * @calls: how often the category was entered
 */
typedef struct {
  guint64 nanoseconds[OX_PROFILE_N_CATEGORIES];
  guint64 calls[OX_PROFILE_N_CATEGORIES];
} OxProfile;

/* What the model, with all its sessions, spent since it was loaded or reset. Always measured. Any thread, at any time; what runs right
 * now counts up to its last change of category. */
void ox_model_get_profile (OxModel *model, OxProfile *profile);
void ox_model_reset_profile (OxModel *model);
/* @profile -= @earlier: what was spent in between. */
void ox_profile_subtract (OxProfile *profile, const OxProfile *earlier);
guint64 ox_profile_get_total (const OxProfile *profile);
/* "matmul", "attention" …: for logs and JSON, not translated. */
const char *ox_profile_category_get_name (OxProfileCategory category);

/* ---- Packed weights on disk ----------------------------------------------------------------------------------- */

/* Packed weights that were kept on disk so that the next start is quick: bytes in use, and removing them. The limit is kept by
 * removing what was used longest ago; 0 keeps nothing. Default: 20 GB. Any thread. */
guint64 ox_packed_cache_get_bytes (void);
gboolean ox_packed_cache_clear (GError **error);
void ox_packed_cache_set_limit (guint64 bytes);

/* ---- Text to tokens ------------------------------------------------------------------------------------------- */

typedef struct _OxTokenizer OxTokenizer;

/* @path: as for ox_model_plan(), or a tokenizer.json. */
OxTokenizer *ox_tokenizer_load (const char *path, GCancellable *cancellable, GError **error);
/* The model's own, owned by it. */
OxTokenizer *ox_model_get_tokenizer (OxModel *model);
OxTokenizer *ox_tokenizer_ref (OxTokenizer *tokenizer);
void ox_tokenizer_unref (OxTokenizer *tokenizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxTokenizer, ox_tokenizer_unref)

guint ox_tokenizer_get_size (OxTokenizer *tokenizer);
/* Appends ids (guint32) of @len bytes of text (-1: up to NUL) to @ids. Bytes that are not UTF-8 count as U+FFFD. With
 * @parse_control, strings of control tokens ("<|im_end|>") become those tokens; user text never wants that. No BOS is added. */
void ox_tokenizer_encode (OxTokenizer *tokenizer, const char *text, gssize len, gboolean parse_control, GArray *ids);
/* Text of @n ids; control tokens appear only with @show_control. Always valid UTF-8. Ids out of range give U+FFFD. */
char *ox_tokenizer_decode (OxTokenizer *tokenizer, const guint32 *ids, gsize n, gboolean show_control);

/* ---- Conversations -------------------------------------------------------------------------------------------- */

typedef enum {
  OX_ROLE_SYSTEM,
  OX_ROLE_USER,
  OX_ROLE_ASSISTANT,
  OX_ROLE_TOOL, /* the result of a call that the assistant made */
} OxRole;

/* Whether the model is to think before it answers. DEFAULT: as its makers set it. */
typedef enum {
  OX_THINKING_DEFAULT,
  OX_THINKING_OFF,
  OX_THINKING_ON,
} OxThinking;

/* A conversation as the model is to see it: always the whole one. */
typedef struct _OxChat OxChat;

OxChat *ox_chat_new (void);
OxChat *ox_chat_copy (const OxChat *chat);
void ox_chat_free (OxChat *chat);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxChat, ox_chat_free)
/* Text is copied; invalid UTF-8 becomes U+FFFD. */
void ox_chat_append (OxChat *chat, OxRole role, const char *text);
/* Reasoning that led to the last message, which is the assistant's. Formats show a model only what its makers want it to see again. */
void ox_chat_set_reasoning (OxChat *chat, const char *reasoning);
/* A call that the last message, which is the assistant's, makes. @arguments: a JSON object. @id may be NULL. FALSE with
 * OX_ERROR_INVALID when @arguments is no JSON object. */
gboolean ox_chat_add_tool_call (OxChat *chat, const char *id, const char *name, const char *arguments, GError **error);
/* A message of the tool role: what the call @id of tool @name gave. Both may be NULL: then it answers the calls in turn. */
void ox_chat_append_tool_result (OxChat *chat, const char *id, const char *name, const char *text);
/* A tool that the model may call, as OpenAI-like JSON: {"type": "function", "function": {"name", "description", "parameters"}}.
 * OX_ERROR_INVALID when it is not that. */
gboolean ox_chat_add_tool (OxChat *chat, const char *declaration, GError **error);
void ox_chat_set_thinking (OxChat *chat, OxThinking thinking);
/* "low", "medium", "xhigh"; NULL: the model's own. Only some formats know it. */
void ox_chat_set_reasoning_effort (OxChat *chat, const char *effort);

guint ox_chat_get_length (const OxChat *chat);
OxRole ox_chat_get_role (const OxChat *chat, guint index);
/* The text of a message; "" for one that has none. */
const char *ox_chat_get_text (const OxChat *chat, guint index);

/* Tokens that @chat would take, prompt for the answer included. */
gboolean ox_model_count_tokens (
  OxModel *model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error);

/* ---- Tools ---------------------------------------------------------------------------------------------------- */

/* Functions that a model may call while it answers. */
typedef struct _OxToolbox OxToolbox;

/* @OX_TOOL_HAS_EFFECTS: changes something outside of the conversation, so the user is asked before each call */
typedef enum {
  OX_TOOL_PLAIN = 0,
  OX_TOOL_HAS_EFFECTS = 1 << 0,
} OxToolFlags;

/* Runs a call. @arguments: a JSON object, checked against the declaration's types and required fields. Returns the result as text or
 * JSON for the model, or NULL with an error, which the model is told in words. May be slow; obeys @cancellable. On the thread of
 * the blocking call that answers. */
typedef char *(*OxToolFunc) (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error);
/* Whether the user allows this call. Blocks until they have said. */
typedef gboolean (*OxToolPermissionFunc) (const char *name,
                                          const char *arguments,
                                          gpointer user_data,
                                          GCancellable *cancellable);

OxToolbox *ox_toolbox_new (void);
OxToolbox *ox_toolbox_ref (OxToolbox *toolbox);
void ox_toolbox_unref (OxToolbox *toolbox);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxToolbox, ox_toolbox_unref)
/* @declaration: as for ox_chat_add_tool(); its name must be new to the toolbox. OX_ERROR_INVALID otherwise. */
gboolean ox_toolbox_add (OxToolbox *toolbox,
                         const char *declaration,
                         OxToolFlags flags,
                         OxToolFunc func,
                         gpointer user_data,
                         GDestroyNotify destroy,
                         GError **error);
/* The tools that need nothing but this computer: get_date_time, calculate, convert_units. */
void ox_toolbox_add_builtin (OxToolbox *toolbox);
/* A text that the user attached: read_attachment lists and reads those added so far, by line. */
void ox_toolbox_add_attachment (OxToolbox *toolbox, const char *name, const char *text);
/* Without one, calls that have effects are refused. */
void ox_toolbox_set_permission (OxToolbox *toolbox, OxToolPermissionFunc func, gpointer user_data);
guint ox_toolbox_get_length (OxToolbox *toolbox);
/* The name and the declaration of a tool, owned by the toolbox. */
const char *ox_toolbox_get_name (OxToolbox *toolbox, guint index);
const char *ox_toolbox_get_declaration (OxToolbox *toolbox, guint index);
/* Runs one call. Never NULL but when cancelled: what went wrong is told in the text, and @failed set. Free with g_free(). */
char *ox_toolbox_call (OxToolbox *toolbox,
                       const char *name,
                       const char *arguments,
                       gboolean *failed,
                       GCancellable *cancellable,
                       GError **error);

/* ---- Answers -------------------------------------------------------------------------------------------------- */

/**
 * OxSampling:
 * @temperature: 0: greedy
 * @top_k: 0: off
 * @top_p: 1: off
 * @min_p: 0: off
 * @repetition_penalty: 1: off; over prompt and answer
 * @frequency_penalty: 0: off; over the answer
 * @presence_penalty: 0: off; over the answer
 * @seed: the same seed, chat, model and machine give the same answer; 0: a new one each time
 * @max_tokens: of the answer; 0: up to the end of the context
 * @stop: strings that end the answer, themselves not part of it; NULL-terminated, borrowed; NULL: none
 * @json_schema: the answer is JSON that this schema allows; borrowed; NULL: anything
 */
typedef struct {
  float temperature;
  guint top_k;
  float top_p;
  float min_p;
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
  guint64 seed;
  guint max_tokens;
  const char *const *stop;
  const char *json_schema;
} OxSampling;

/* The model's own recommendation (generation_config.json, or the family's), with everything else off. */
void ox_model_get_default_sampling (OxModel *model, OxSampling *sampling);

/**
 * OxStatistics:
 * @prompt_tokens: of the whole conversation
 * @reused_tokens: of these, held from before and not computed again
 * @answer_tokens: so far
 * @context_length: tokens the session can hold
 * @prefill_seconds: reading the prompt
 * @decode_seconds: writing the answer
 * @first_token_seconds: from the call to the first piece of text
 * @drafted_tokens: guessed ahead by a drafter or from the text itself
 * @accepted_tokens: of these, what the model would have said, too
 */
typedef struct {
  guint prompt_tokens;
  guint reused_tokens;
  guint answer_tokens;
  guint drafted_tokens;
  guint accepted_tokens;
  guint context_length;
  double prefill_seconds;
  double decode_seconds;
  double first_token_seconds;
} OxStatistics;

/* Tokens a second; 0 while unknown. */
double ox_statistics_get_prefill_rate (const OxStatistics *statistics);
double ox_statistics_get_decode_rate (const OxStatistics *statistics);

/**
 * OxEndReason:
 * @OX_END_STOP: the model ended its turn
 * @OX_END_LENGTH: max_tokens reached
 * @OX_END_CONTEXT: the context is full
 * @OX_END_CANCELLED: stopped by the caller
 * @OX_END_TOOL_ROUNDS: the model called tools more often in a row than is allowed
 * @OX_END_ERROR: see the call's GError
 */
typedef enum {
  OX_END_STOP,
  OX_END_LENGTH,
  OX_END_CONTEXT,
  OX_END_TOOL_ROUNDS,
  OX_END_CANCELLED,
  OX_END_ERROR,
} OxEndReason;

/**
 * OxEventType:
 * @OX_EVENT_CONTEXT: the conversation was too long, and @done of its @total messages were left out, oldest first
 * @OX_EVENT_PREFILL: reading: @done of @total tokens
 * @OX_EVENT_THINKING: a piece of reasoning text
 * @OX_EVENT_TEXT: a piece of the answer: whole UTF-8 characters
 * @OX_EVENT_TOOL_CALL: a call that is about to run: @tool_id, @tool_name, @tool_arguments
 * @OX_EVENT_TOOL_RESULT: what it gave: @tool_id, @tool_name, @text; @failed
 * @OX_EVENT_TOOL_MALFORMED: @text is a call that could not be read; it does not run
 * @OX_EVENT_END: the one last event of a call, whatever happened: @reason and final statistics
 */
typedef enum {
  OX_EVENT_CONTEXT,
  OX_EVENT_PREFILL,
  OX_EVENT_THINKING,
  OX_EVENT_TEXT,
  OX_EVENT_TOOL_CALL,
  OX_EVENT_TOOL_RESULT,
  OX_EVENT_TOOL_MALFORMED,
  OX_EVENT_END,
} OxEventType;

/* Valid during the callback only. @statistics is up to date in every event. */
typedef struct {
  OxEventType type;
  const char *text;
  const char *tool_id;
  const char *tool_name;
  const char *tool_arguments; /* a JSON object */
  gboolean failed;
  guint done;
  guint total;
  OxEndReason reason;
  OxStatistics statistics;
} OxEvent;

/* Called on the thread of the blocking call. */
typedef void (*OxEventFunc) (const OxEvent *event, gpointer user_data);

typedef struct _OxSession OxSession;

/* The state of one conversation. Memory for it is taken as it grows. */
OxSession *ox_session_new (OxModel *model, GError **error);
void ox_session_free (OxSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxSession, ox_session_free)
OxModel *ox_session_get_model (OxSession *session);

/* What to do with a conversation that is longer than the context. OX_CONTEXT_STOP: OX_ERROR_CONTEXT_FULL before anything is read.
 * OX_CONTEXT_DROP_OLDEST: leave out the oldest turns, keep the system message and the last question. */
typedef enum {
  OX_CONTEXT_STOP,
  OX_CONTEXT_DROP_OLDEST,
} OxContextPolicy;

void ox_session_set_context_policy (OxSession *session, OxContextPolicy policy);

/* Guessing tokens ahead and checking several at once. The answer is the same, sooner. OX_SPECULATION_AUTO: with the model's drafter or
 * MTP layer, else from repetitions in the text, as long as it pays. */
typedef enum {
  OX_SPECULATION_AUTO,
  OX_SPECULATION_OFF,
} OxSpeculation;

void ox_session_set_speculation (OxSession *session, OxSpeculation speculation);

/* Tools that answers may call, at most @max_rounds times in a row. Their declarations go to the model along with those of the chat.
 * NULL: none. */
void ox_session_set_toolbox (OxSession *session, OxToolbox *toolbox, guint max_rounds);

/**
 * OxContextUse: what sending a chat would mean, told beforehand
 * @prompt_tokens: of the whole chat, prompt for the answer included
 * @reused_tokens: of these, held by the session already
 * @context_length: tokens the session can hold
 * @dropped_messages: messages that the session's context policy would leave out
 * @dropped_tokens: the tokens of these
 */
typedef struct {
  guint prompt_tokens;
  guint reused_tokens;
  guint context_length;
  guint dropped_messages;
  guint dropped_tokens;
} OxContextUse;

gboolean ox_session_measure (
  OxSession *session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error);

/* The tokens held and their state, to a file and back. A file of another model or another version is OX_ERROR_UNSUPPORTED; a damaged
 * one OX_ERROR_DAMAGED; either leaves the session empty. Written atomically. */
gboolean ox_session_save (OxSession *session, const char *path, GCancellable *cancellable, GError **error);
gboolean ox_session_restore (OxSession *session, const char *path, GCancellable *cancellable, GError **error);

/* Answers @chat, whose last message is normally the user's; when it is the assistant's, the answer continues it. The session
 * works out what it already holds, so the caller just passes the whole conversation, edited or not. @sampling NULL: the
 * model's own. FALSE with G_IO_ERROR_CANCELLED when stopped: text handed out so far stands. */
gboolean ox_session_generate (OxSession *session,
                              const OxChat *chat,
                              const OxSampling *sampling,
                              OxEventFunc on_event,
                              gpointer user_data,
                              GCancellable *cancellable,
                              GError **error);
/* Continues plain @text, without a chat format; control-token strings in it are parsed. */
gboolean ox_session_complete (OxSession *session,
                              const char *text,
                              const OxSampling *sampling,
                              OxEventFunc on_event,
                              gpointer user_data,
                              GCancellable *cancellable,
                              GError **error);

G_END_DECLS
