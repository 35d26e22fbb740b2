// The one piece of JavaScript of ours in a realm. It is evaluated before any script, receives the native door `host`,
// and returns the functions the engine drives a run with. Everything it needs
// later it takes hold of now.
(function (host, tick, made, returns, now, random, scriptAsks, done, failed, inEnglish, question) {
  'use strict';
  const { freeze, isFrozen, preventExtensions, defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, getOwnPropertySymbols,
    getPrototypeOf, setPrototypeOf, create, keys } = Object;
  const ObjectCtor = Object;
  const { isArray } = Array;
  const { stringify } = JSON;
  const { min, floor } = Math;
  const NativeDate = Date, PromiseCtor = Promise, ErrorCtor = Error, TypeErrorCtor = TypeError, RangeErrorCtor = RangeError, SyntaxErrorCtor = SyntaxError;
  const RegExpCtor = RegExp, DataViewCtor = DataView, StringFn = String, MapCtor = Map, SetCtor = Set, SymbolFn = Symbol, WeakMapCtor = WeakMap, WeakSetCtor = WeakSet;
  const stackOf = getOwnPropertyDescriptor(Error.prototype, 'stack').get;
  const iteratorSymbol = Symbol.iterator;
  const CALL = 0, LOG = 2, ILLEGAL = 3, CALL_IN_LANE = 4, PROGRESS = 5, CONTENT = 6, CONTENT_IN_LANE = 7, PAGES = 8, PAGES_IN_LANE = 9;

  // ---- the door to tools ----
  const waiting = new Map();
  const toolErrors = new WeakMap();
  const text = (value) => StringFn(value).toWellFormed();

  const here = () => stackOf.call(new ErrorCtor());
  // What a program can act on.
  const DETAILS = ['retryAfterSeconds', 'requiredScopes'];
  const withDetails = (target, failure) => {
    for (let i = 0; i < DETAILS.length; i++) if (failure[DETAILS[i]] !== undefined) target[DETAILS[i]] = failure[DETAILS[i]];
    return target;
  };
  const toolError = (failure) => {
    const error = new ErrorCtor(failure.message);
    const field = (name, value, enumerable) =>
      defineProperty(error, name, { value, writable: true, enumerable, configurable: true });
    field('name', 'ToolError', false);
    field('code', failure.code, true);
    field('toolName', failure.toolName, true);
    withDetails(error, failure);
    toolErrors.set(error, failure);
    return error;
  };
  const nameOf = (name, who) => {
    if (typeof name !== 'string' || name === '') throw new TypeErrorCtor(who + ': the tool name must be a non-empty string');
    return text(name);
  };
  // Members of the next call's input that are undefined: the member and the words for it.
  let lacks = [];
  const ask = (kind, name, body, quiet, stack, lacked) =>
    new PromiseCtor((resolve, reject) => {
      waiting.set(host(kind, name, body), { name, resolve, reject, quiet, stack, lacked });
    });
  // The engine says "circular reference" and no more.
  const withoutCycles = (value, replacer, what, space) => {
    try {
      return stringify(value, replacer, space);
    } catch (error) {
      if (!(error instanceof TypeErrorCtor) || error.message !== 'circular reference') throw error;
      throw new TypeErrorCtor(what + ' holds a circular reference, an object inside itself, which JSON cannot carry: pick the fields you need into a new object');
    }
  };
  // Halves of surrogate pairs become U+FFFD on the way out: keys that differ in nothing else would become one.
  const withoutLoss = (json, what) => {
    if (json === undefined || !json.includes('\\ud')) return json;
    const queue = [parse(json)];
    for (let i = 0; i < queue.length; i++) {
      const at = queue[i];
      if (at === null || typeof at !== 'object') continue;
      tick();
      const names = keys(at), seen = new SetCtor();
      for (let k = 0; k < names.length; k++) {
        seen.add(names[k].toWellFormed());
        queue[queue.length] = at[names[k]];
      }
      if (seen.size < names.length) throw new TypeErrorCtor(what + ' holds two keys that differ only in halves of surrogate pairs, which JSON cannot carry');
    }
    return json;
  };
  const refusePromise = (holder, key, what) => {
    const place = key === '' ? ' is a promise' : ' holds a promise as ' + (isArray(holder) ? 'element ' : 'property ') + key.slice(0, 100).toWellFormed();
    throw new TypeErrorCtor(what + place + ': await it, or a list of them with await Promise.all(list)');
  };
  const textOf = (what) => {
    const enter = function (key, value) {
      if (value instanceof PromiseCtor) refusePromise(this, key, what);
      // As in results; a BigInt has no JSON.
      return typeof value === 'bigint' ? value : plainForm(value);
    };
    return (input) => {
      if (input === undefined) return '{}';
      const json = withoutLoss(withoutCycles(input, enter, what), what);
      if (json === undefined) throw new TypeErrorCtor(what + ' is a ' + typeof input + ', which JSON cannot carry');
      return json;
    };
  };
  const inputText = textOf('callTool: the input'), argumentsText = textOf('getPrompt: the second argument');
  // Items of all pages of one call.
  const MOST_ITEMS = 10000;
  const callTool = async function callTool(name, input, options) {
    const lacked = lacks;
    lacks = [];
    const tool = nameOf(name, 'callTool');
    const quiet = options !== undefined && options !== null && options.throwOnError === false;
    const pages = options !== undefined && options !== null ? options.paginate : undefined;
    if (pages === undefined) return ask(inLane ? CALL_IN_LANE : CALL, tool, inputText(input), quiet, here(), lacked);
    const max = pages !== null && typeof pages === 'object' ? pages.max : undefined;
    if (typeof max !== 'number' || floor(max) !== max || max < 1 || max > MOST_ITEMS) {
      throw new TypeErrorCtor('callTool: paginate is { max: number }, the items to collect, 1 to ' + MOST_ITEMS);
    }
    const body = '{"input":' + inputText(input) + ',"max":' + max + '}';
    return ask(inLane ? PAGES_IN_LANE : PAGES, tool, body, quiet, here(), lacked);
  };
  // An error that names a member of the input says why there is none.
  const explained = (message, lacked) => {
    let out = message;
    for (let i = 0; lacked !== undefined && i < lacked.length; i++) if (message.includes(lacked[i].key)) out += '; ' + lacked[i].words;
    return out;
  };
  // What servers offer beside tools. The call log names the function and its object.
  const content = (name, body, stack) => ask(inLane ? CONTENT_IN_LANE : CONTENT, name, body, false, stack);
  const readResource = async function readResource(uri) {
    if (typeof uri !== 'string' || uri === '') throw new TypeErrorCtor('readResource: the URI must be a non-empty string');
    const address = text(uri);
    return content('readResource ' + address, '{"function":"readResource","uri":' + stringify(address) + '}', here());
  };
  const listResources = async function listResources() {
    return content('listResources', '{"function":"listResources"}', here());
  };
  const getPrompt = async function getPrompt(name, args) {
    if (typeof name !== 'string' || name === '') throw new TypeErrorCtor('getPrompt: the name must be a non-empty string');
    const prompt = text(name), given = argumentsText(args);
    if (given[0] !== '{') throw new TypeErrorCtor('getPrompt: the second argument must be an object');
    return content('getPrompt ' + prompt, '{"function":"getPrompt","name":' + stringify(prompt) + ',"arguments":' + given + '}', here());
  };
  const deliver = (id, ok, value) => {
    const open = waiting.get(id);
    if (open === undefined) return;
    waiting.delete(id);
    if (!ok) value.message = explained(value.message, open.lacked);
    if (ok) {
      open.resolve(open.quiet ? { success: true, data: value, error: null } : value);
    } else if (open.quiet) {
      open.resolve({ success: false, data: null, error: withDetails({ message: value.message, code: value.code }, value) });
    } else {
      open.reject(toolError(withDetails({ toolName: open.name, code: value.code, message: value.message, stack: open.stack }, value)));
    }
  };

  // Waits for its answer; those to calls that come before it are delivered as they come.
  const getTool = function getTool(name) {
    const tool = nameOf(name, 'getTool');
    const answer = question(tool, deliver);
    if (!answer.ok) throw toolError(withDetails({ toolName: tool, code: answer.value.code, message: answer.value.message, stack: here() }, answer.value));
    return answer.value;
  };

  // ---- __safe_parallel ----
  // While an operation is being started: the calls of several lanes travel together.
  let inLane = false;
  const begin = (operation) => {
    inLane = true;
    try { return operation(); } finally { inLane = false; }
  };
  // The contract gives each failure one line: whatever else ends a line becomes a space.
  const LINE_ENDS = ['\r\n', '\n', '\r', '\u2028', '\u2029', '\v', '\f', '\u0085'];
  const oneLine = (message) => {
    let line = message;
    for (let i = 0; i < LINE_ENDS.length; i++) line = line.replaceAll(LINE_ENDS[i], ' ');
    return line;
  };
  // Characters of a failed operation's message, and of its name and code.
  const LONGEST_FAILURE = 8192, LONGEST_NAME = 256;
  const messageOf = (error) => {
    try {
      return text(error !== null && typeof error === 'object' && 'message' in error ? error.message : error);
    } catch {
      return 'unprintable error';
    }
  };
  // Of a long text both ends: a hundred operations may fail with the same one, as long as the heap.
  const ends = (value, most) => value.length <= most ? value
    : value.slice(0, most / 2) + '… ' + (value.length - most) + ' characters left out …' + value.slice(value.length - most / 2);
  const failureOf = (error) => {
    try {
      const message = error !== null && typeof error === 'object' && 'message' in error ? error.message : error;
      return ends(StringFn(message), LONGEST_FAILURE).toWellFormed();
    } catch {
      return 'unprintable error';
    }
  };
  // An operation's error as a slot of `settle` has it.
  const reasonOf = (error) => {
    const reason = { name: 'Error', code: undefined, message: failureOf(error) };
    if (error === null || typeof error !== 'object') return reason;
    const short = (value) => ends(value, LONGEST_NAME).toWellFormed();
    try { if (typeof error.name === 'string') reason.name = short(error.name); } catch { }
    try { if (typeof error.code === 'string') reason.code = short(error.code); } catch { }
    const failure = toolErrors.get(error);
    if (failure === undefined) return reason;
    reason.toolName = short(failure.toolName);
    return withDetails(reason, failure);
  };
  const parallel = async function __safe_parallel(fns, options) {
    if (!isArray(fns)) throw new TypeErrorCtor('__safe_parallel: the first argument must be an array of functions');
    const total = fns.length;
    if (total > 100) throw new RangeErrorCtor('__safe_parallel: ' + total + ' operations; at most 100 are allowed');
    const work = [];
    for (let i = 0; i < total; i++) {
      const fn = fns[i];
      if (typeof fn !== 'function') throw new TypeErrorCtor('__safe_parallel: operation ' + i + ' is not a function');
      work[i] = fn;
    }
    let lanes = 10;
    const asked = options === undefined || options === null ? undefined : options.maxConcurrency;
    if (asked !== undefined) {
      if (typeof asked !== 'number' || !(asked >= 1)) {
        throw new RangeErrorCtor('__safe_parallel: maxConcurrency must be a number of at least 1');
      }
      lanes = min(20, floor(asked));
    }
    const settle = options !== undefined && options !== null && !!options.settle;
    const results = [], failed = [];
    for (let i = 0; i < total; i++) { results[i] = undefined; failed[i] = null; }
    let next = 0, failures = 0;
    const lane = async () => {
      while (next < total) {
        const i = next++;
        try {
          const value = await begin(work[i]);
          results[i] = settle ? { status: 'fulfilled', value } : value;
        } catch (error) {
          if (settle) { results[i] = { status: 'rejected', reason: reasonOf(error) }; continue; }
          failed[i] = { message: failureOf(error) };
          failures++;
        }
      }
    };
    const running = [];
    for (let i = 0; i < lanes && i < total; i++) running[i] = lane();
    for (let i = 0; i < running.length; i++) await running[i];
    if (failures > 0) {
      let message = failures + ' of ' + total + ' parallel operations failed';
      for (let i = 0; i < total; i++) if (failed[i] !== null) message += '\n[' + i + ']: ' + oneLine(failed[i].message);
      throw new ErrorCtor(message);
    }
    return results;
  };

  // ---- values that leave ----
  const dateValue = Date.prototype.valueOf;
  const isDate = (value) => { try { dateValue.call(value); return true; } catch { return false; } };
  const mapSize = getOwnPropertyDescriptor(Map.prototype, 'size').get;
  const setSize = getOwnPropertyDescriptor(Set.prototype, 'size').get;
  const mapGet = Map.prototype.get, mapPut = Map.prototype.set;
  const mapEach = Map.prototype.forEach, setEach = Set.prototype.forEach;
  const regexpText = RegExp.prototype.toString, isView = ArrayBuffer.isView;
  const holds = (get, value) => { try { get.call(value); return true; } catch { return false; } };
  // A map or a set as JSON has them.
  const listForm = (value) => {
    if (value instanceof MapCtor && holds(mapSize, value)) {
      const pairs = [];
      let textual = true;
      mapEach.call(value, (v, k) => { tick(); if (typeof k !== 'string') textual = false; pairs[pairs.length] = [k, v]; });
      if (!textual) return pairs;
      const out = create(null);
      for (let i = 0; i < pairs.length; i++) out[pairs[i][0]] = pairs[i][1];
      return out;
    }
    if (value instanceof SetCtor && holds(setSize, value)) {
      const items = [];
      setEach.call(value, (v) => { tick(); items[items.length] = v; });
      return items;
    }
    return value;
  };
  const plainForm = (value) => {
    if (typeof value === 'bigint') {
      const digits = StringFn(value);
      if (digits.length > 4096) throw new RangeErrorCtor('the result holds a BigInt of more than 4096 digits');
      return digits;
    }
    if (value === null || typeof value !== 'object' || isArray(value)) return value;
    if (value instanceof ErrorCtor) {
      const out = { name: messageOf(value.name), message: messageOf(value.message) };
      const code = value.code;
      if (code !== undefined) out.code = code;
      return out;
    }
    if (value instanceof RegExpCtor) return regexpText.call(value);
    if (isView(value) && !(value instanceof DataViewCtor)) {
      const items = [];
      for (let i = 0; i < value.length; i++) { tick(); items[i] = value[i]; }
      return items;
    }
    return listForm(value);
  };
  // What JSON reads now: the stand-ins of objects with getters, and the last property that was read of one.
  let reading = { standIns: undefined, from: undefined, raw: undefined };
  const note = (out, value, name) => {
    const get = () => {
      const raw = value[name];
      reading.from = out;
      return reading.raw = raw;
    };
    defineProperty(out, name, { get, enumerable: true });
  };
  // In place of an object with getters, one that notes what they return: JSON calls `toJSON` before the replacer, and to read the
  // property there again would run the getter again.
  const standIn = (value) => {
    const names = keys(value);
    let i = 0;
    while (i < names.length && getOwnPropertyDescriptor(value, names[i]).get === undefined) i++;
    if (i === names.length) return value;
    if (reading.standIns === undefined) reading.standIns = new MapCtor();
    // The same one again, so that JSON finds cycles.
    const known = mapGet.call(reading.standIns, value), out = known === undefined ? create(null) : known;
    mapPut.call(reading.standIns, value, out);
    for (i = 0; i < names.length; i++) if (getOwnPropertyDescriptor(out, names[i]) === undefined) note(out, value, names[i]);
    return out;
  };
  const leave = function (key, value) {
    const raw = reading.from === this ? reading.raw : this[key];
    if (raw !== value && raw !== null && typeof raw === 'object' && typeof raw.toJSON === 'function' && !isDate(raw)) {
      throw new TypeErrorCtor("the result holds an object with a 'toJSON' function: return plain data");
    }
    const plain = plainForm(value);
    return plain !== value || plain === null || typeof plain !== 'object' || isArray(plain) ? plain : standIn(plain);
  };
  const leaveResult = function (key, value) {
    if (value instanceof PromiseCtor) refusePromise(this, key, 'the result');
    return leave.call(this, key, value);
  };
  const leaveConsole = function (key, value) { return value instanceof PromiseCtor ? '[Promise]' : leave.call(this, key, value); };
  const encode = (value, replacer, what) => {
    // A getter may print while a result is read.
    const outer = reading;
    reading = { standIns: undefined, from: undefined, raw: undefined };
    try {
      const json = withoutCycles(value, replacer, what);
      return json === undefined ? 'null' : json;
    } finally {
      reading = outer;
    }
  };

  // ---- copies ----
  const setAdd = SetCtor.prototype.add;
  const bufferLength = getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get, bufferSlice = ArrayBuffer.prototype.slice;
  const viewSlice = getPrototypeOf(Uint8Array).prototype.slice;
  const uncloneable = (what) => {
    const error = new ErrorCtor(what + ' could not be cloned');
    defineProperty(error, 'name', { value: 'DataCloneError', writable: true, enumerable: false, configurable: true });
    return error;
  };
  const copied = (value, seen) => {
    tick();
    if (typeof value === 'function') throw uncloneable('a function');
    if (typeof value === 'symbol') throw uncloneable('a symbol');
    if (value === null || typeof value !== 'object') return value;
    const known = mapGet.call(seen, value);
    if (known !== undefined) return known;
    const remember = (copy) => { mapPut.call(seen, value, copy); return copy; };
    if (isArray(value)) {
      const out = remember([]);
      out.length = value.length;
      const names = keys(value);
      for (let i = 0; i < names.length; i++) out[names[i]] = copied(value[names[i]], seen);
      return out;
    }
    if (isDate(value)) return remember(new NativeDate(dateValue.call(value)));
    if (holds(mapSize, value)) {
      const out = remember(new MapCtor());
      mapEach.call(value, (v, k) => { mapPut.call(out, copied(k, seen), copied(v, seen)); });
      return out;
    }
    if (holds(setSize, value)) {
      const out = remember(new SetCtor());
      setEach.call(value, (v) => { setAdd.call(out, copied(v, seen)); });
      return out;
    }
    if (value instanceof RegExpCtor) return remember(new RegExpCtor(value.source, value.flags));
    if (holds(bufferLength, value)) return remember(bufferSlice.call(value, 0));
    if (isView(value) && !(value instanceof DataViewCtor)) return remember(viewSlice.call(value));
    if (value instanceof PromiseCtor || value instanceof WeakMapCtor || value instanceof WeakSetCtor || isView(value)) {
      throw uncloneable('this object');
    }
    if (value instanceof ErrorCtor) {
      const out = remember(new ErrorCtor(messageOf(value.message)));
      defineProperty(out, 'name', { value: messageOf(value.name), writable: true, enumerable: false, configurable: true });
      return out;
    }
    const out = remember({});
    const names = keys(value);
    for (let i = 0; i < names.length; i++) {
      // By definition, so that a key cannot be one of ours to refuse.
      defineProperty(out, names[i], { value: copied(value[names[i]], seen), writable: true, enumerable: true, configurable: true });
    }
    return out;
  };
  const structuredClone = { structuredClone(value) { return copied(value, new MapCtor()); } }.structuredClone;

  // ---- what the engine does not do as ECMAScript says ----
  const spread = (value) => typeof value === 'string' ? ObjectCtor(value) : value;
  const parts = (strings) => { freeze(strings.raw); return freeze(strings); };

  // ---- what explains errors ----
  const quoted = (value) => "'" + oneLine(value.slice(0, 60)).toWellFormed() + (value.length > 60 ? "…' of " + value.length + ' characters' : "'");
  // A property as it lies there: `undefined` for one that a getter would make, which could do anything.
  const peek = (value, key) => {
    if (typeof key !== 'string' && typeof key !== 'number') return undefined;
    return value === null || value === undefined ? undefined : getOwnPropertyDescriptor(value, key)?.value;
  };
  // Whether reading the property would run a getter.
  const isMade = (value, key) => {
    for (let at = ObjectCtor(value); at !== null; at = getPrototypeOf(at)) {
      const property = getOwnPropertyDescriptor(at, key);
      if (property !== undefined) return property.get !== undefined || property.set !== undefined;
    }
    return false;
  };
  // Objects whose keys may still be listed: that takes time for each key.
  let enumerations = 100;
  // What a value is, in a few words.
  const kindOf = (value) => {
    switch (typeof value) {
      case 'string': return 'a string ' + quoted(value);
      case 'number': case 'boolean': return 'the ' + typeof value + ' ' + value;
      case 'bigint': case 'symbol': case 'function': return 'a ' + typeof value;
      case 'undefined': return 'undefined';
    }
    if (value === null) return 'null';
    if (isArray(value)) return 'an array of ' + value.length + (value.length === 1 ? ' element' : ' elements');
    if (value instanceof PromiseCtor) return 'a promise: await it';
    if (value instanceof ErrorCtor) {
      const message = peek(value, 'message');
      return typeof message === 'string' ? 'an error: ' + quoted(message) : 'an error';
    }
    if (value instanceof MapCtor) return 'a Map';
    if (value instanceof SetCtor) return 'a Set';
    if (isView(value)) return value instanceof DataViewCtor ? 'a DataView' : 'a typed array of ' + value.length + (value.length === 1 ? ' element' : ' elements');
    if (value instanceof StringFn) return 'a String object';
    if (enumerations-- <= 0) return 'an object';
    const names = keys(value);
    let list = '';
    for (let i = 0; i < names.length && i < 8; i++) list += (i === 0 ? ' ' : ', ') + names[i].slice(0, 40).toWellFormed();
    if (names.length > 8) list += ' and ' + (names.length - 8) + ' more';
    return list === '' ? 'an object without keys' : 'an object with the keys' + list;
  };
  const isJson = (value) => {
    if (!value.startsWith('[') && !value.startsWith('{') || value.length > 65536) return false;
    try { parse(value); return true; } catch { return false; }
  };
  // A part of the value that could be meant.
  const hint = (value, path) => {
    if (typeof value === 'string') return isJson(value) ? '; if it is JSON, use JSON.parse(' + path + ')' : '';
    if (value === null || typeof value !== 'object' || isArray(value) || isView(value) || value instanceof StringFn || enumerations <= 0) return '';
    const names = keys(value);
    for (let i = 0; i < names.length && i < 100; i++) if (isArray(peek(value, names[i]))) return '; ' + path + '.' + names[i].slice(0, 40).toWellFormed() + ' is an array';
    return '';
  };
  const missing = (path, key, value, beside) => {
    const found = value === null ? 'null' : value === undefined ? 'undefined' : kindOf(value);
    throw new TypeErrorCtor("cannot read property '" + key + "' of " + found + ': ' + path + ' is ' + found + beside);
  };
  // `root` is the variable that `path` begins with, and `names` are the members after it: nothing is evaluated again.
  const nil = function (path, key, ...known) {
    if (known.length === 0) throw new TypeErrorCtor("cannot read property '" + key + "' of null or undefined: " + path + ' is null or undefined');
    const [root, baseName, ...names] = known;
    let base = root, value = root;
    for (let i = 0; i < names.length; i++) {
      base = value;
      const isKey = typeof names[i] === 'string' || typeof names[i] === 'number';
      if (base === null || base === undefined || !isKey || isMade(base, names[i])) {
        throw new TypeErrorCtor("cannot read property '" + key + "' of null or undefined: " + path + ' is null or undefined');
      }
      value = peek(base, names[i]);
    }
    // It was null or undefined when it was read: what lies there by now is another.
    if (value !== null && value !== undefined) value = undefined;
    missing(path, key, value, names.length > 0 ? '; ' + baseName + ' is ' + kindOf(base) : '');
  };
  const has = function (value, path, name, ...base) {
    if (value === null || value === undefined) missing(path, name, value, base.length > 1 ? '; ' + base[1] + ' is ' + kindOf(base[0]) : '');
    if (typeof value === 'object' && isMade(value, name) || typeof value[name] === 'function') return value;
    throw new TypeErrorCtor(path + '.' + name + ' is not a function: ' + path + ' is ' + kindOf(value) + hint(value, path));
  };
  // Notes a member of a call's input that is undefined. `names` lead from `root` to it.
  const lack = function (value, key, path, root, baseName, ...names) {
    if (value !== undefined || lacks.length >= 10) return value;
    let base = root;
    for (let i = 0; i < names.length - 1; i++) base = peek(base, names[i]);
    lacks[lacks.length] = { key, words: path + ' is undefined' + (names.length > 0 ? '; ' + baseName + ' is ' + kindOf(base) : '') };
    return value;
  };
  const iter = function (value, path) {
    if (isArray(value)) return value;
    if (value !== null && value !== undefined) {
      if (typeof value === 'object' && isMade(value, iteratorSymbol) || typeof value[iteratorSymbol] === 'function') return value;
    }
    throw new TypeErrorCtor(path + ' is not iterable: it is ' + kindOf(value) + hint(value, path));
  };

  // ---- texts for people ----
  const numberValue = Number.prototype.valueOf, bigintValue = BigInt.prototype.valueOf, { is } = Object;
  const LONGEST = 1048576;
  const ORDER = 0, NUMBER = 1, MOMENT = 2, DATE = 3, TIME = 4;
  const orderOptions = ['sensitivity', 'numeric', 'ignorePunctuation', 'caseFirst', 'usage', 'localeMatcher', 'collation'];
  const numberOptions = ['style', 'currency', 'currencyDisplay', 'currencySign', 'notation', 'compactDisplay', 'useGrouping',
    'minimumIntegerDigits', 'minimumFractionDigits', 'maximumFractionDigits', 'minimumSignificantDigits', 'maximumSignificantDigits',
    'signDisplay', 'roundingMode', 'roundingIncrement', 'roundingPriority', 'trailingZeroDisplay', 'numberingSystem', 'localeMatcher',
    'unit', 'unitDisplay'];
  const dateOptions = ['weekday', 'era', 'year', 'month', 'day', 'dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits',
    'timeZoneName', 'hour12', 'hourCycle', 'timeZone', 'dateStyle', 'timeStyle', 'calendar', 'numberingSystem', 'localeMatcher',
    'formatMatcher'];
  // Options that are true or false, whatever they are given as; and one that also has names.
  const truths = freeze({ __proto__: null, numeric: true, ignorePunctuation: true, hour12: true });
  const counts = freeze({ __proto__: null, minimumIntegerDigits: true, minimumFractionDigits: true, maximumFractionDigits: true,
    minimumSignificantDigits: true, maximumSignificantDigits: true, roundingIncrement: true, fractionalSecondDigits: true });
  const groupingOf = (value) => {
    if (value === true) return 'always';
    if (!value) return 'never';
    const name = text(value);
    return name === 'true' || name === 'false' ? '' : name.slice(0, 100);
  };
  const languageOf = (locales) => {
    const first = isArray(locales) ? locales[0] : locales;
    if (first === undefined) return '';
    if (typeof first !== 'string') throw new TypeErrorCtor('Incorrect locale information provided');
    return first === '' ? '-' : first.slice(0, 300).toWellFormed();
  };
  const choices = (locales, options, names) => {
    const list = [languageOf(locales)];
    if (options === undefined) return list;
    if (options === null) throw new TypeErrorCtor('Cannot convert undefined or null to object');
    for (let i = 0; i < names.length; i++) {
      const name = names[i], value = options[name];
      if (value === undefined) list[i + 1] = '';
      else if (truths[name]) list[i + 1] = value ? 'true' : 'false';
      else if (counts[name]) list[i + 1] = StringFn(+value);
      else if (name === 'useGrouping') list[i + 1] = groupingOf(value);
      // An empty text is none of the values that any of them has.
      else list[i + 1] = text(value).slice(0, 100) || '-';
    }
    return list;
  };
  const english = (kind, a, b, list) => {
    const answer = inEnglish(kind, a, b, list);
    if (answer[0] === '!') throw new RangeErrorCtor(answer.slice(1));
    if (answer[0] === '?') throw new TypeErrorCtor(answer.slice(1));
    return answer;
  };
  const moment = (kind, date, rest) => english(kind, StringFn(dateValue.call(date)), '', choices(rest[0], rest[1], dateOptions));
  // The engine's own pass nothing on to the elements.
  const viewLength = getOwnPropertyDescriptor(getPrototypeOf(Uint8Array).prototype, 'length').get;
  const listed = (list, length, rest) => {
    let out = '';
    for (let i = 0; i < length; i++) {
      const value = list[i];
      if (i > 0) out += ',';
      if (value !== undefined && value !== null) out += value.toLocaleString(rest[0], rest[1]);
      tick(out);
    }
    return out;
  };
  const forPeople = [
    [Array.prototype, { toLocaleString(...rest) {
      if (this === undefined || this === null) throw new TypeErrorCtor('toLocaleString called on null or undefined');
      return listed(this, this.length, rest);
    } }],
    [getPrototypeOf(Uint8Array).prototype, { toLocaleString(...rest) { return listed(this, viewLength.call(this), rest); } }],
    [String.prototype, { localeCompare(that, ...rest) {
      if (this === undefined || this === null) throw new TypeErrorCtor('localeCompare called on null or undefined');
      const a = text(this), b = text(that);
      if (a.length + b.length > LONGEST) throw new RangeErrorCtor('localeCompare: the texts are too long; compare long texts with < and >');
      return +english(ORDER, a, b, choices(rest[0], rest[1], orderOptions));
    } }],
    [Number.prototype, { toLocaleString(...rest) {
      const number = numberValue.call(this);
      return english(NUMBER, is(number, -0) ? '-0' : StringFn(number), '', choices(rest[0], rest[1], numberOptions));
    } }],
    [BigInt.prototype, { toLocaleString(...rest) {
      return english(NUMBER, StringFn(bigintValue.call(this)), '', choices(rest[0], rest[1], numberOptions));
    } }],
    [Date.prototype, {
      toLocaleString(...rest) { return moment(MOMENT, this, rest); },
      toLocaleDateString(...rest) { return moment(DATE, this, rest); },
      toLocaleTimeString(...rest) { return moment(TIME, this, rest); },
    }],
  ];

  // ---- console ----
  const shown = (value) => {
    switch (typeof value) {
      case 'string': return value;
      case 'bigint': return value + 'n';
      case 'function': return '[Function]';
      case 'object':
        if (value === null) return 'null';
        if (value instanceof ErrorCtor) return messageOf(value.name) + ': ' + messageOf(value.message);
        return value instanceof PromiseCtor ? '[Promise]' : encode(value, leaveConsole, 'console: the value');
      default: return StringFn(value);
    }
  };
  // For what was thrown: that it cannot be shown is no reason to show nothing.
  const printed = (value) => { try { return shown(value); } catch { return '[object]'; } };
  const log = (...args) => {
    let line = '';
    for (let i = 0; i < args.length; i++) line += (i === 0 ? '' : ' ') + shown(args[i]);
    host(LOG, line.toWellFormed(), '');
  };
  // ---- checkpoints ----
  const leaveProgress = function (key, value) {
    if (value instanceof PromiseCtor) refusePromise(this, key, 'progress: the value');
    return leave.call(this, key, value);
  };
  const progress = function progress(value) {
    tick();
    const bytes = host(PROGRESS, '', withoutLoss(encode(value, leaveProgress, 'progress: the value'), 'progress: the value'));
    if (bytes === 1) throw new TypeErrorCtor('progress: the value is nested deeper than 100 levels, or an object in it has the key "$serde_json::private::RawValue", which is reserved');
    if (bytes > 0) throw new RangeErrorCtor('progress: the value is ' + bytes + ' bytes of JSON; at most 16384 are kept: give what you need to go on, such as ids');
  };
  const consoleObject = {};
  const level = { log: (...args) => log(...args), info: (...args) => log(...args), debug: (...args) => log(...args),
    warn: (...args) => log(...args), error: (...args) => log(...args) };
  for (const name of keys(level)) consoleObject[name] = freeze(level[name]);

  // ---- how a run starts and ends ----
  const describe = (error) => {
    const tool = (typeof error === 'object' && error !== null) ? toolErrors.get(error) : undefined;
    if (tool !== undefined) return ['tool', tool.toolName, tool.message, tool.code, tool.stack];
    let name = 'Error', message, stack = '';
    if (typeof error === 'object' && error !== null) {
      try { const own = error.name; if (typeof own === 'string' && own !== '') name = own; } catch { }
      message = 'message' in error ? messageOf(error) : printed(error);
      try { stack = text(stackOf.call(error)); } catch { }
    } else {
      message = printed(error);
    }
    return ['error', text(name), text(message), '', stack];
  };
  const start = (main) => {
    const fail = (error, ofResult) => {
      let parts;
      try { parts = describe(error); } catch { parts = ['error', 'Error', 'unprintable error', '', '']; }
      failed(ofResult && parts[0] === 'error' ? 'result' : parts[0], parts[1], parts[2], parts[3], parts[4]);
    };
    main().then((value) => {
      let json;
      try { json = withoutLoss(encode(value, leaveResult, 'the result'), 'the result'); } catch (error) { fail(error, true); return; }
      done(json);
    }, (error) => fail(error, false));
  };
  const deepFreeze = (value) => {
    const queue = [value];
    for (let i = 0; i < queue.length; i++) {
      const at = queue[i];
      if (at === null || typeof at !== 'object') continue;
      freeze(at);
      const names = keys(at);
      for (let k = 0; k < names.length; k++) queue[queue.length] = at[names[k]];
    }
    return value;
  };

  // ---- time and randomness come from the run, not from the machine ----
  const DateFn = function Date(...args) {
    if (new.target === undefined) return new NativeDate(now()).toString();
    const date = args.length === 0 ? new NativeDate(now()) : new NativeDate(...args);
    return new.target === DateFn ? date : setPrototypeOf(date, new.target.prototype);
  };
  const hidden = (object, name, value) => defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });
  hidden(DateFn, 'now', { now() { return now(); } }.now);
  hidden(DateFn, 'parse', NativeDate.parse);
  hidden(DateFn, 'UTC', NativeDate.UTC);
  defineProperty(DateFn, 'prototype', { value: NativeDate.prototype, writable: false });
  defineProperty(DateFn, 'length', { value: 7 });
  // With a part that is no number the engine keeps the date, which has to become invalid.
  const { setTime } = NativeDate.prototype;
  const PARTS = ['Milliseconds', 'Seconds', 'Minutes', 'Hours', 'Date', 'Month', 'FullYear'];
  for (let i = 0; i < 14; i++) {
    const name = (i < 7 ? 'set' : 'setUTC') + PARTS[i % 7], set = NativeDate.prototype[name];
    const setter = { [name](...parts) {
      const time = set.call(this, ...parts);
      return time === time ? time : setTime.call(this, time);
    } }[name];
    defineProperty(setter, 'length', { value: set.length });
    hidden(NativeDate.prototype, name, setter);
  }
  hidden(Math, 'random', { random() { return random(); } }.random);

  // Callbacks of JSON see every object on the way, ours included: they are refused by any name.
  const { parse } = JSON;
  const noCallback = (callback, name) => {
    if (typeof callback === 'function') throw new TypeErrorCtor('JSON.' + name + ' takes no callback here; change the value before or after');
  };
  forPeople[forPeople.length] = [JSON, {
    parse(source, callback) {
      noCallback(callback, 'parse');
      try { return parse(source); } catch (error) {
        const message = error instanceof SyntaxErrorCtor ? peek(error, 'message') : undefined;
        if (typeof message !== 'string') throw error;
        throw new SyntaxErrorCtor('JSON.parse: ' + message + '; the value is ' + kindOf(source));
      }
    },
    stringify(value, list, space) {
      noCallback(list, 'stringify');
      return withoutCycles(value, list, 'JSON.stringify: the value', space);
    },
  }];
  for (let i = 0; i < forPeople.length; i++) {
    const home = forPeople[i][0], methods = forPeople[i][1];
    for (const name of keys(methods)) hidden(home, name, freeze(methods[name]));
  }

  // ---- the realm ----
  const global = globalThis;
  hidden(global, 'Date', DateFn);
  // Symbols make values iterable and keys unique; the hooks into the language's own operations are not for scripts.
  const SymbolFace = { Symbol: (description) => SymbolFn(description) }.Symbol;
  for (const name of ['iterator', 'asyncIterator', 'toStringTag', 'prototype']) {
    defineProperty(SymbolFace, name, { value: SymbolFn[name], writable: false, enumerable: false, configurable: false });
  }
  hidden(global, 'Symbol', SymbolFace);
  hidden(global, 'callTool', callTool);
  hidden(global, 'getTool', getTool);
  hidden(global, 'readResource', readResource);
  hidden(global, 'listResources', listResources);
  hidden(global, 'getPrompt', getPrompt);
  hidden(global, '__safe_parallel', parallel);
  hidden(global, 'structuredClone', structuredClone);
  hidden(global, 'progress', progress);
  hidden(global, '__ag_tick', tick);
  hidden(global, '__ag_made', made);
  hidden(global, '__ag_returns', returns);
  hidden(global, '__ag_spread', spread);
  hidden(global, '__ag_parts', parts);
  hidden(global, '__ag_nil', nil);
  hidden(global, '__ag_has', has);
  hidden(global, '__ag_iter', iter);
  hidden(global, '__ag_lack', lack);
  hidden(global, 'console', consoleObject);
  const kept = { __proto__: null };
  for (const name of ['Object', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'BigInt', 'Math', 'JSON', 'Date', 'RegExp', 'Map',
    'Set', 'WeakMap', 'WeakSet', 'Promise', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'URIError',
    'EvalError', 'AggregateError', 'Infinity', 'NaN', 'undefined', 'parseInt', 'parseFloat', 'isNaN', 'isFinite',
    'encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI', 'ArrayBuffer', 'DataView', 'Uint8Array', 'Int8Array',
    'Uint16Array', 'Int16Array', 'Uint32Array', 'Int32Array', 'Float32Array', 'Float64Array', 'Uint8ClampedArray',
    'BigInt64Array', 'BigUint64Array', 'structuredClone', 'progress', 'callTool', 'getTool', 'readResource', 'listResources', 'getPrompt', '__safe_parallel', '__ag_tick', '__ag_made', '__ag_returns',
    '__ag_spread', '__ag_parts', '__ag_nil', '__ag_has', '__ag_iter', '__ag_lack', 'console']) kept[name] = true;

  const prototypes = new Set(), found = [];
  const find = (value) => { if (value !== null && (typeof value === 'object' || typeof value === 'function') && !isFrozen(value)) found[found.length] = value; };
  const proto = (value) => { if (value !== undefined) { find(value); prototypes.add(value); } };
  // Prototypes that no property leads to.
  const iterators = [[][SymbolFn.iterator](), new Map().entries(), new Set().values(), ''[SymbolFn.iterator](), 'a'.matchAll(/a/g),
    [].values().map((value) => value), Iterator.from({ next() { } })];
  for (const iterator of iterators) {
    const home = getPrototypeOf(iterator);
    proto(home);
    proto(getPrototypeOf(home));
  }
  const kinds = [async function () { }, function* () { }, async function* () { }];
  for (const fn of kinds) {
    const home = getPrototypeOf(fn);
    proto(home);
    if (home.prototype) { proto(home.prototype); proto(getPrototypeOf(home.prototype)); }
  }
  const typedArray = getPrototypeOf(Uint8Array);
  proto(typedArray.prototype);
  const functionProto = Function.prototype;
  proto(functionProto);
  find(NativeDate);
  find(SymbolFn);
  for (const name of getOwnPropertyNames(global)) {
    const value = global[name];
    if (value !== global) find(value);
    if (typeof value === 'function') proto(value.prototype);
    if (!kept[name]) delete global[name];
  }
  for (const name of ['getPrototypeOf', 'setPrototypeOf', 'getOwnPropertySymbols', 'defineProperty', 'defineProperties',
    'getOwnPropertyDescriptor', 'getOwnPropertyDescriptors']) delete Object[name];
  for (const name of ['__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__']) delete Object.prototype[name];
  // It writes any text as a number, such as one that no reader of JSON takes.
  for (const name of ['rawJSON', 'isRawJSON']) delete JSON[name];
  Error.stackTraceLimit = 8;
  for (const name of ['captureStackTrace', 'prepareStackTrace', 'stackTraceLimit']) delete Error[name];

  // Ends the run: the native side does not return.
  const refuse = (name) => { host(ILLEGAL, name, here()); };
  const ownSetter = (name, home) => function (value) {
    if (this === home) throw new TypeErrorCtor("cannot assign to read only property '" + name + "'");
    defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
  };
  // A frozen prototype would make `own.toString = …` throw (the "override mistake"): the names that scripts do override are
  // accessors whose setter defines the property on the receiver.
  const overridable = (proto, names) => {
    for (const name of names) {
      const at = getOwnPropertyDescriptor(proto, name);
      if (at === undefined || !('value' in at)) continue;
      const value = at.value;
      // Only the getter holds it from here on, and what a function holds is not found below.
      find(value);
      defineProperty(proto, name, { get: () => value, set: ownSetter(name, proto), enumerable: false, configurable: false });
    }
  };
  // Species lookups of arrays, buffers and expressions read it from inside the engine: there it leads nowhere. Everything else
  // inherits the refusal of Object.prototype. A promise keeps its own, which is a global anyway.
  const species = [Array.prototype, RegExp.prototype, ArrayBuffer.prototype, typedArray.prototype];
  for (const value of prototypes) {
    if (value !== PromiseCtor.prototype) delete value.constructor;
  }
  for (const value of species) {
    defineProperty(value, 'constructor', { get: () => { if (scriptAsks()) refuse('constructor'); }, set: ownSetter('constructor', value), enumerable: false, configurable: false });
  }
  overridable(Object.prototype, ['toString', 'toLocaleString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable']);
  overridable(Error.prototype, ['name', 'message', 'toString']);
  for (const kind of [TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError, AggregateError]) {
    delete kind.prototype.message;
    overridable(kind.prototype, ['name']);
  }
  for (const proto of [functionProto, Array.prototype, NativeDate.prototype, Map.prototype, Set.prototype]) overridable(proto, ['toString', 'toJSON']);
  defineProperty(Object.prototype, 'constructor', { get: () => refuse('constructor'), set: ownSetter('constructor', Object.prototype), enumerable: false, configurable: false });
  defineProperty(Object.prototype, '__proto__', { get: () => refuse('__proto__'), set: () => refuse('__proto__'), enumerable: false, configurable: false });
  defineProperty(Error.prototype, 'stack', { get: () => '', set: ownSetter('stack', Error.prototype), enumerable: false, configurable: false });
  for (const name of ['captureStackTrace', 'prepareStackTrace', 'stackTraceLimit']) {
    defineProperty(Error, name, { get: () => refuse('Error.' + name), set: () => refuse('Error.' + name), enumerable: false, configurable: false });
  }
  // Freezes every object that a script could reach.
  while (found.length > 0) {
    const at = found[found.length - 1];
    found.length -= 1;
    if (at === global || isFrozen(at)) continue;
    freeze(at);
    find(getPrototypeOf(at));
    const names = getOwnPropertyNames(at), symbols = getOwnPropertySymbols(at);
    for (let k = 0; k < names.length + symbols.length; k++) {
      const property = getOwnPropertyDescriptor(at, k < names.length ? names[k] : symbols[k - names.length]);
      find(property.value);
      find(property.get);
      find(property.set);
    }
  }

  // Everything of the global object that no run changes is frozen here, once.
  const chosen = { __proto__: null, console: true, RegExp: true };
  for (const name of getOwnPropertyNames(global)) {
    if (!chosen[name]) defineProperty(global, name, { writable: false, configurable: false });
  }

  const fixed = (name) => { defineProperty(global, name, { writable: false, configurable: false }); };
  const seal = (context, withConsole, withRegExp) => {
    if (withConsole) fixed('console'); else delete global.console;
    if (withRegExp) fixed('RegExp'); else delete global.RegExp;
    defineProperty(global, 'codecallContext', { value: deepFreeze(context), writable: false, enumerable: false, configurable: false });
    preventExtensions(global);
  };
  return { start, deliver, seal };
})
