// A file on its way: chosen or dropped, looked at by a dry run, corrected by options, loaded.

import { useEffect, useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { CardTitle, ProblemNotice } from "../../components/parts.tsx";
import { plural } from "../../format.ts";
import {
  cancelImport,
  type FileOptions,
  followImport,
  type Import,
  NO_OPTIONS,
  sendFile,
  uploadQuery,
} from "../../loads/imports.ts";
import { dropped, isDragged } from "../../state/dropped.ts";
import * as css from "../imports.module.css";
import { OptionFields } from "./options.tsx";
import { Report } from "./report.tsx";

/** How far a file is. */
interface Step {
  isPreview: boolean;
  /** How much of it is sent, up to 1. */
  sent: number;
  /** What became of it, once it is sent. */
  import: Import | null;
}

interface Running {
  file: File;
  options: FileOptions;
  isPreview: boolean;
}

function useFile(onEnded: () => void) {
  const [file, setFile] = useState<File | null>(null);
  const [options, setOptions] = useState<FileOptions>(NO_OPTIONS);
  const [step, setStep] = useState<Step | null>(null);
  const action = useAction(async (signal, { file, options, isPreview }: Running) => {
    setStep({ isPreview, sent: 0, import: null });
    try {
      const show = (sent: number, current: Import | null) =>
        signal.aborted || setStep({ isPreview, sent, import: current });
      const query = uploadQuery(file.name, options, isPreview);
      const accepted = await sendFile(file, query, (sent) => show(sent, null), signal);
      onEnded();
      show(1, await followImport(accepted, (current) => show(1, current), signal));
      onEnded();
    } catch (cause) {
      if (!signal.aborted) setStep(null);
      throw cause;
    }
  });
  const run = (file: File, options: FileOptions, isPreview: boolean) =>
    void action.run({ file, options, isPreview });
  return {
    file,
    options,
    step,
    action,
    choose: (file: File) => {
      setFile(file);
      run(file, options, true);
    },
    change: (change: Partial<FileOptions>) => {
      setOptions({ ...options, ...change });
      // What was looked at with other options is not what would be loaded.
      if (step?.isPreview) setStep(null);
    },
    preview: () => file && run(file, options, true),
    load: () => file && run(file, options, false),
  };
}

export function FileCard({ isEnabled, onEnded }: { isEnabled: boolean; onEnded: () => void }) {
  const state = useFile(onEnded);
  const { file, options, step, action } = state;
  const isFree = isEnabled && !action.isRunning;
  const isOver = isDragged.value && isFree;
  const waiting = dropped.value;
  useEffect(() => {
    if (!waiting || !isFree) return;
    dropped.value = null;
    state.choose(waiting);
  }, [waiting, isFree]);
  const ended = !action.isRunning && step?.import ? step.import : null;
  return (
    <section class="card" aria-label="A file" aria-busy={action.isRunning}>
      <header>
        <CardTitle title="A file" note="It is looked at first; nothing is stored before you load it." />
      </header>
      <label class={`${css.drop} ${isOver ? css.over : ""}`}>
        <span>{isOver ? "Drop it" : "Drop a file here, or choose one:"}</span>
        <input
          type="file"
          disabled={!isFree}
          onClick={(event) => {
            // The same file may have changed.
            event.currentTarget.value = "";
          }}
          onChange={(event) => {
            const chosen = event.currentTarget.files?.[0];
            if (chosen) state.choose(chosen);
          }}
        />
      </label>
      <OptionFields
        options={options}
        isDisabled={!isFree}
        onChange={state.change}
        onPreview={file ? state.preview : null}
      />
      <div role="status">
        {file && step && <Progress name={file.name} step={step} isRunning={action.isRunning} />}
      </div>
      <ProblemNotice of={action} />
      {action.isRunning && step?.import && <CancelButton id={step.import.id} />}
      {ended && <Ended of={ended} onLoad={state.load} />}
    </section>
  );
}

function describe({ isPreview, sent, import: current }: Step, isRunning: boolean): string {
  if (!current) return `Sending, ${Math.floor(sent * 100)} %`;
  if (isRunning) {
    if (current.status === "queued") return "Waits for earlier imports";
    const saved =
      current.snapshots_written > 0 ? `, ${plural(current.snapshots_written, "observation")} saved` : "";
    return `${isPreview ? "Looking at it" : "Loading"}: ${plural(current.rows_read, "row")} read${saved}`;
  }
  if (current.status === "cancelled") return "Cancelled. What was saved before remains.";
  if (current.status === "failed") return `${isPreview ? "It cannot be loaded" : "Failed"}: ${current.error}`;
  return isPreview ? "This is what it contains." : "Loaded, and visible on every page.";
}

function Progress({ name, step, isRunning }: { name: string; step: Step; isRunning: boolean }) {
  const { sent, import: current } = step;
  return (
    <div class={css.progress}>
      <p>
        <b dir="auto">{name}</b> {describe(step, isRunning)}
      </p>
      {isRunning && <progress aria-label="Progress" {...(current ? {} : { value: sent })} />}
    </div>
  );
}

function CancelButton({ id }: { id: string }) {
  const cancel = useAction((signal) => cancelImport(id, signal));
  return (
    <p>
      <ProblemNotice of={cancel} />
      <button type="button" disabled={cancel.isRunning} onClick={() => void cancel.run()}>
        Cancel
      </button>
    </p>
  );
}

function Ended({ of: ended, onLoad }: { of: Import; onLoad: () => void }) {
  if (ended.status !== "succeeded") return null;
  const loadable = ended.rows_read - ended.refused;
  return (
    <>
      {ended.dry_run && (
        <p>
          <button type="button" class="primary" disabled={loadable === 0} onClick={onLoad}>
            {ended.refused > 0
              ? `Load the other ${plural(loadable, "row")}`
              : `Load ${plural(loadable, "row")}`}
          </button>
        </p>
      )}
      <Report of={ended} />
    </>
  );
}
