/** Blob, File and FormData. */
import Blob from "fetch-blob";
import File from "fetch-blob/file.js";
import { FormData, formDataToBlob } from "formdata-polyfill/esm.min.js";

export { Blob, File, FormData };

/** A form as a request carries it: `multipart/form-data`, with its boundary in the type. */
export const multipart = (form: unknown): InstanceType<typeof Blob> =>
  formDataToBlob(form as InstanceType<typeof FormData>);
